"""Samples of a causal model: sample_with_transformers.py MODEL PROMPTS N"""

import json
import sys
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

path, prompts, n = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModelForCausalLM.from_pretrained(path).eval()
draw = {"do_sample": True, "num_return_sequences": n, "max_new_tokens": 200}
set_seed(1)
for prompt, answer in (line.split("\t") for line in prompts.read_text(encoding="utf-8").splitlines()):
    inputs = tokenizer(prompt, return_tensors="pt")
    found = model.generate(**inputs, **draw, return_dict_in_generate=True, output_logits=True)
    drawn = found.sequences[:, inputs["input_ids"].shape[1] :]
    logprobs = model.compute_transition_scores(found.sequences, found.logits, normalize_logits=True)
    ended = drawn == tokenizer.eos_token_id
    logprobs[ended.cumsum(1) > ended.int()] = 0.0  # what fills a sample up after its end
    pairs = zip(tokenizer.batch_decode(drawn, skip_special_tokens=True), logprobs.sum(1).tolist(), strict=True)
    candidates = [{"text": text, "logprob": score, "gain": float(answer in text)} for text, score in pairs]
    print(json.dumps({"source": prompt, "candidates": candidates}))
