"""transformers' GPT2LMHeadModel of the same size under its own Trainer."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.utils.logging import disable_progress_bar, set_verbosity_error

from benchmarks import cases, clock
from benchmarks.cases import END, Case, Timing, read_text


class TimerCallback(TrainerCallback):
    """Calls a timer at the end of each step."""

    def __init__(self, timer: clock.StepTimer) -> None:
        self.timer = timer

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.timer.stamp()


def training(case: Case) -> Timing:
    """Return the time between the ends of two steps of the trainer's loop."""
    clock.prepare_device(case)
    set_verbosity_error()
    disable_progress_bar()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=case.vocabularies[0], n_positions=case.length, n_embd=case.dim, n_layer=case.layers,
        n_head=case.heads, n_inner=cases.TEXT_WIDTH * case.dim, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=END, eos_token_id=END, use_cache=False,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    ids = torch.from_numpy(read_text(case.prepared))
    blocks = ids[: len(ids) // case.length * case.length].view(-1, case.length)
    rows = [{"input_ids": block, "labels": block} for block in blocks]
    timer = clock.StepTimer(case)
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            output_dir=folder, max_steps=timer.steps, per_device_train_batch_size=case.batch, use_cpu=not case.cuda,
            learning_rate=cases.TEXT_RATE, lr_scheduler_type="cosine", adam_beta1=cases.TEXT_BETAS[0],
            adam_beta2=cases.TEXT_BETAS[1], adam_epsilon=cases.TEXT_EPSILON, weight_decay=cases.TEXT_DECAY,
            max_grad_norm=cases.TEXT_CLIP, optim="adamw_torch_fused", bf16=case.precision == "bfloat16",
            save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True,
        )  # fmt: skip
        trainer = Trainer(model=model, args=options, train_dataset=rows, callbacks=[TimerCallback(timer)])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return Timing(timer.seconds, timer.memory, sum(p.numel() for p in model.parameters()))
