"""Make rows with deepfocus: `python peers_focus.py FOLDER` reads old/, new/, rows.npy, text.jsonl, writes made.npy."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    import torch
    import transformers
    from deepfocus import FOCUS

    folder = Path(sys.argv[1])
    old, new = (transformers.AutoTokenizer.from_pretrained(folder / name) for name in ("old", "new"))
    new_rows = FOCUS(
        source_embeddings=torch.from_numpy(np.load(folder / "rows.npy")),
        source_tokenizer=old,
        target_tokenizer=new,
        target_training_data_path=str(folder / "text.jsonl"),
        fasttext_model_min_count=2,
        verbosity="silent",
    )
    np.save(folder / "made.npy", new_rows.numpy())
