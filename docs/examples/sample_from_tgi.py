"""Samples from Text Generation Inference: sample_from_tgi.py URL PROMPTS N"""

import json
import sys
from pathlib import Path
from urllib.request import Request, urlopen

url, prompts, n = sys.argv[1:]
draw = {"best_of": int(n), "do_sample": True, "details": True, "max_new_tokens": 200}
for prompt, answer in (line.split("\t") for line in Path(prompts).read_text(encoding="utf-8").splitlines()):
    asked = json.dumps({"inputs": prompt, "parameters": draw}).encode()
    best = json.load(urlopen(Request(f"{url}/generate", asked, {"Content-Type": "application/json"})))
    candidates = []
    for sample in [best | best["details"], *best["details"]["best_of_sequences"]]:
        text, logprob = sample["generated_text"], sum(word["logprob"] for word in sample["tokens"])
        candidates.append({"text": text, "logprob": logprob, "gain": float(answer in text)})
    print(json.dumps({"source": prompt, "candidates": candidates}))
