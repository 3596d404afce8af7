"""N-best transcripts: transcribe_with_transformers.py MODEL N FILE.wav..."""

import json
import sys
from pathlib import Path

from scipy.io import wavfile
from transformers import AutoModelForSpeechSeq2Seq, AutoProcessor

path, n = sys.argv[1], int(sys.argv[2])
processor, model = AutoProcessor.from_pretrained(path), AutoModelForSpeechSeq2Seq.from_pretrained(path).eval()
beam = {"num_beams": n, "num_return_sequences": n, "length_penalty": 0.0}
for recording in map(Path, sys.argv[3:]):
    rate, samples = wavfile.read(recording)
    inputs = processor(samples / 2**15, sampling_rate=rate, return_tensors="pt")
    found = model.generate(**inputs, **beam, return_dict_in_generate=True, output_scores=True)
    texts = processor.batch_decode(found["sequences"], skip_special_tokens=True)
    pairs = zip(texts, found["sequences_scores"].tolist(), strict=True)
    candidates = [{"text": text.strip(), "score": score} for text, score in pairs]
    print(json.dumps({"id": recording.stem, "candidates": candidates}))
