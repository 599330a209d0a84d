"""Hugging Face's Marian model of the same size under transformers' own Seq2SeqTrainer and its collator."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import (
    DataCollatorForSeq2Seq,
    MarianConfig,
    MarianMTModel,
    PreTrainedTokenizerFast,
    PrinterCallback,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)  # fmt: skip
from transformers.utils.logging import disable_progress_bar, set_verbosity_error

from benchmarks import cases, clock
from benchmarks.cases import BEGIN, END, PADDING, Case, Timing, read_sentences


class TimerCallback(TrainerCallback):
    """Calls a timer at the end of each step."""

    def __init__(self, timer: clock.StepTimer) -> None:
        self.timer = timer

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.timer.stamp()


def model(case: Case) -> MarianMTModel:
    """Return the model: two vocabularies, an untied output layer, post-LN, ReLU, sinusoidal positions."""
    sides = {}
    for side in ("encoder", "decoder"):
        sides[f"{side}_layers"], sides[f"{side}_ffn_dim"] = cases.LAYERS, cases.FEEDFORWARD
        sides[f"{side}_attention_heads"] = case.heads
    config = MarianConfig(
        vocab_size=case.vocabularies[0], decoder_vocab_size=case.vocabularies[1], d_model=case.dim, **sides,
        share_encoder_decoder_embeddings=False, tie_word_embeddings=False, scale_embedding=True,
        activation_function="relu", max_position_embeddings=256,
        dropout=cases.DROPOUT, attention_dropout=cases.DROPOUT, activation_dropout=cases.DROPOUT,
        pad_token_id=PADDING, bos_token_id=BEGIN, eos_token_id=END, forced_eos_token_id=END,
        decoder_start_token_id=BEGIN,
    )  # fmt: skip
    return MarianMTModel(config)


def training(case: Case) -> Timing:
    """Return the time between the ends of two steps of the trainer's loop."""
    clock.prepare_device(case)
    set_verbosity_error()
    disable_progress_bar()
    torch.manual_seed(0)
    network = model(case)
    # The collator needs a tokenizer for padding only.
    words = Tokenizer(WordLevel({"<unk>": cases.UNKNOWN, "<pad>": PADDING}, unk_token="<unk>"))
    padder = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", unk_token="<unk>")
    pairs = zip(read_sentences(case.prepared, "source"), read_sentences(case.prepared, "target"), strict=True)
    rows = [
        {"input_ids": [BEGIN, *x, END], "attention_mask": [1] * (len(x) + 2), "labels": [*y, END]} for x, y in pairs
    ]
    timer = clock.StepTimer(case)
    with tempfile.TemporaryDirectory() as folder:
        options = Seq2SeqTrainingArguments(
            output_dir=folder, max_steps=timer.steps, per_device_train_batch_size=case.batch, use_cpu=not case.cuda,
            learning_rate=cases.RATE, lr_scheduler_type="constant", adam_beta1=cases.BETAS[0], adam_beta2=cases.BETAS[1],
            adam_epsilon=cases.EPSILON, weight_decay=0.0, max_grad_norm=0.0, bf16=case.precision == "bfloat16",
            save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True,
        )  # fmt: skip
        trainer = Seq2SeqTrainer(
            model=network, args=options, train_dataset=rows, callbacks=[TimerCallback(timer)],
            data_collator=DataCollatorForSeq2Seq(padder, model=network),
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return Timing(timer.seconds, timer.memory, sum(p.numel() for p in network.parameters() if p.requires_grad))
