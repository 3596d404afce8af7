"""Samples of a chat model behind OpenAI's interface: sample_from_server.py URL MODEL PROMPTS N"""

import json
import sys
from pathlib import Path
from urllib.request import Request, urlopen

url, model, prompts, n = sys.argv[1:]
for prompt, answer in (line.split("\t") for line in Path(prompts).read_text(encoding="utf-8").splitlines()):
    asked = {"model": model, "messages": [{"role": "user", "content": prompt}], "n": int(n), "logprobs": True}
    request = Request(f"{url}/v1/chat/completions", json.dumps(asked).encode(), {"Content-Type": "application/json"})
    candidates = []
    for choice in json.load(urlopen(request))["choices"]:
        text, words = choice["message"]["content"], choice["logprobs"]["content"]
        logprob = sum(word["logprob"] for word in words)
        candidates.append({"text": text, "logprob": logprob, "gain": float(answer in text)})
    print(json.dumps({"source": prompt, "candidates": candidates}))
