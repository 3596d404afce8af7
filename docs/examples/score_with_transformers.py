"""Log probabilities of candidates, or of sources given them: score_with_transformers.py MODEL LISTS FORMAT [SOURCES]"""

import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

import rerank

path, lists, form, *others = sys.argv[1:]
sources = others[0] if others else None
channel = AutoConfig.from_pretrained(path).is_encoder_decoder
model = (AutoModelForSeq2SeqLM if channel else AutoModelForCausalLM).from_pretrained(path).eval()
tokenizer = AutoTokenizer.from_pretrained(path)
tokenizer.pad_token, encode = tokenizer.pad_token or tokenizer.eos_token, {"return_tensors": "pt", "padding": True}
first, last = tokenizer.bos_token or tokenizer.eos_token, tokenizer.eos_token
print("# channel" if channel else "# neural_lm")
for one in rerank.read(lists, form, sources=sources):
    texts = [candidate.text for candidate in one.candidates]
    if not texts:
        continue
    if channel:
        inputs, outputs = tokenizer(texts, **encode), tokenizer(text_target=[one.source] * len(texts), **encode)
    else:
        inputs = outputs = tokenizer([first + text + last for text in texts], add_special_tokens=False, **encode)
    labels = outputs.input_ids.masked_fill(outputs.attention_mask == 0, -100)
    with torch.no_grad():
        logits = model(**inputs, labels=labels).logits.transpose(1, 2)
    shifted = (logits, labels) if channel else (logits[..., :-1], labels[:, 1:])
    print(*(-torch.nn.functional.cross_entropy(*shifted, reduction="none").sum(1)).tolist(), sep="\n")
