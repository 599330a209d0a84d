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
from benchmarks.cases import BEGIN, END, PADDING, Case, Timed, sentences


class Stamping(TrainerCallback):
    """Takes the time at the end of each step."""

    def __init__(self, stamps: clock.Stamps) -> None:
        self.stamps = stamps

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.stamps.stamp()


def model(case: Case) -> MarianMTModel:
    """Return the model: two vocabularies, an output layer of its own, post-LN, ReLU, sinusoids."""
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


def training(case: Case) -> Timed:
    """Return the time of a step of the trainer's loop, from the end of one to the end of the next."""
    clock.ready(case)
    set_verbosity_error()
    disable_progress_bar()
    torch.manual_seed(0)
    made = model(case)
    # The collator pads with a tokenizer; nothing is tokenized.
    words = Tokenizer(WordLevel({"<unk>": cases.UNKNOWN, "<pad>": PADDING}, unk_token="<unk>"))
    padder = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", unk_token="<unk>")
    pairs = zip(sentences(case.prepared, "source"), sentences(case.prepared, "target"), strict=True)
    rows = [
        {"input_ids": [BEGIN, *x, END], "attention_mask": [1] * (len(x) + 2), "labels": [*y, END]} for x, y in pairs
    ]
    stamps = clock.Stamps(case)
    with tempfile.TemporaryDirectory() as folder:
        options = Seq2SeqTrainingArguments(
            output_dir=folder, max_steps=stamps.steps, per_device_train_batch_size=case.batch, use_cpu=not case.cuda,
            learning_rate=cases.RATE, lr_scheduler_type="constant", adam_beta1=cases.BETAS[0], adam_beta2=cases.BETAS[1],
            adam_epsilon=cases.EPSILON, weight_decay=0.0, max_grad_norm=0.0, bf16=case.precision == "bfloat16",
            save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True,
        )  # fmt: skip
        trainer = Seq2SeqTrainer(
            model=made, args=options, train_dataset=rows, callbacks=[Stamping(stamps)],
            data_collator=DataCollatorForSeq2Seq(padder, model=made),
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return Timed(stamps.seconds, stamps.memory, sum(p.numel() for p in made.parameters() if p.requires_grad))
