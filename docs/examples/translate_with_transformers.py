"""N-best translations of a sequence-to-sequence model: translate_with_transformers.py MODEL SOURCES N"""

import json
import sys
from pathlib import Path

from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

path, sources, n = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModelForSeq2SeqLM.from_pretrained(path).eval()
beam = {"num_beams": n, "num_return_sequences": n, "length_penalty": 0.0, "max_new_tokens": 200}
for source in sources.read_text(encoding="utf-8").splitlines():
    inputs = tokenizer(source, return_tensors="pt")
    found = model.generate(**inputs, **beam, return_dict_in_generate=True, output_scores=True)
    texts = tokenizer.batch_decode(found.sequences, skip_special_tokens=True)
    pairs = zip(texts, found.sequences_scores.tolist(), strict=True)
    print(json.dumps({"source": source, "candidates": [{"text": text, "score": score} for text, score in pairs]}))
