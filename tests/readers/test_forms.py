"""Files of other programs, as their documentation or source shows them, read without naming a format."""

import gzip
import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

import rerank
from rerank.base.errors import DataError
from rerank.readers.base import make_reader
from rerank.readers.lists import Lists
from rerank.readers.texts.forms import FORMS

USER, SYSTEM = {"role": "user", "content": "2+2?"}, {"role": "system", "content": "Add."}


# lm_eval/loggers/evaluation_tracker.py of https://github.com/EleutherAI/lm-evaluation-harness: what it makes of samples
def logged(doc: int, responses: list[str], filtered: list[Any], filter: str, **metrics: Any) -> dict[str, Any]:
    return {
        "doc_id": doc, "doc": {"question": "2+2?", "answer": "It is 2+2.\n#### 4"}, "target": "It is 2+2.\n#### 4",
        "arguments": {"gen_args_0": {"arg_0": "Question: 2+2?\nAnswer:", "arg_1": {"until": ["Question:"]}}},
        "resps": [responses], "filtered_resps": filtered, "filter": filter, "metrics": ["exact_match"],
        "doc_hash": f"{doc:064x}", "prompt_hash": "0", "target_hash": "0",
    } | metrics  # fmt: skip


LM_EVAL = [
    logged(0, ["So 4.", "Is 2+2=5?", "4.0!"], ["4"], "strict-match", exact_match=1.0),  # majority vote
    logged(1, ["So 4.", "So 5.", "x"], [["4", "5", "[invalid]"]], "strict-match", exact_match=0.0),  # take_first_k
    logged(2, ["So 5.", "6"], [["4", "4"]], "strict-match", exact_match=[0, 1]),
    logged(0, ["So 4.", "Is 2+2=5?", "4.0!"], ["4"], "flexible-extract", exact_match=1.0),
]
# src/sal/search/best_of_n.py and src/sal/utils/score.py of https://github.com/huggingface/search-and-learn
SEARCH = {
    "problem": "Half of one?", "solution": "\\boxed{\\frac{1}{2}}", "answer": "\\frac{1}{2}", "subject": "Algebra",
    "level": 1, "unique_id": "test/algebra/1.json", "scores": [[0.5, 0.25], [0.75]], "agg_scores": [0.25, 0.75],
    "completions": ["So $\\boxed{\\frac{1}{2}}$.", "\\boxed{2}"], "completion_tokens": [9, 3], "pred": "\\boxed{2}",
    "pred_maj@2": "\\boxed{2}",
}  # fmt: skip
# verifiers/utils/eval_utils.py of https://github.com/PrimeIntellect-ai/verifiers; later versions call the id example_id
VERIFIERS = [
    {
        "example_id": example, "prompt": [SYSTEM, {"role": "user", "content": question}], "task": "default",
        "completion": [{"role": "assistant", "content": "Let me see."}, USER, {"role": "assistant", "content": text}],
        "answer": "4", "reward": reward, "correct_answer": reward, "format": 0.5, "generation_ms": 7.5, "info": {},
    }
    for example, question, text, reward in [(0, "2+2?", "So 4", 1.0), (1, "1+3?", "5", 0.0), (0, "2+2?", "x 5", 0.25)]
]  # fmt: skip
# verl/trainer/ppo/ray_trainer.py of https://github.com/volcengine/verl: a line for each rollout
VERL = [{"input": "2+2?", "output": text, "gts": "4", "score": score, "step": 1}
        for text, score in [("It is 5", -0.5), ("It is 4", 1.0)]]  # fmt: skip
# math_eval.py of https://github.com/ZubinGou/math-evaluation-harness
HARNESS = {"idx": 3, "question": "2+2?", "gt_cot": "Add.", "gt": "4", "code": ["\\boxed{5}", "\\boxed{4}"],
           "pred": ["5", "4"], "report": [None, None], "score": [False, True]}  # fmt: skip
# https://docs.vllm.ai/en/latest/api/vllm/outputs/: RequestOutput and CompletionOutput
VLLM = {
    "request_id": "7", "prompt": "2+2?", "prompt_token_ids": [1, 2], "finished": True, "outputs": [
        {"index": 0, "text": " 4", "token_ids": [3, 4], "cumulative_logprob": -0.5, "logprobs": None,
         "finish_reason": "stop", "stop_reason": None},
        {"index": 1, "text": " 5 or", "token_ids": [3, 4, 5], "cumulative_logprob": -1.5, "logprobs": None,
         "finish_reason": "length", "stop_reason": None},
    ],
}  # fmt: skip
# https://docs.sglang.io/docs/basic_usage/native_api, with the prompt beside what the engine gives
SGLANG = [
    {
        "prompt": "2+2?", "text": text, "meta_info": {
            "id": "a", "prompt_tokens": 4, "completion_tokens": 2, "finish_reason": finish,
            "output_token_logprobs": [[-0.5, 1, None], [-0.25 * k, 2, None]]},
    }
    for k, (text, finish) in enumerate([("4", {"type": "stop", "matched": 2}), ("5", {"type": "length", "length": 2})])
]  # fmt: skip
# https://platform.openai.com/docs/api-reference/responses/object
RESPONSES = [
    {
        "id": f"resp_{k}", "object": "response", "status": status, "model": "m", "metadata": {"q": group},
        "incomplete_details": None if status == "completed" else {"reason": "max_output_tokens"}, "output": [
            {"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "?"}]},
            {"id": "msg_1", "type": "message", "role": "assistant", "status": status,
             "content": [{"type": "output_text", "text": "It is ", "annotations": []},
                         {"type": "output_text", "text": f"{k}", "annotations": []}]}],
    }
    for k, (status, group) in enumerate([("completed", "a"), ("incomplete", "a"), ("completed", "b")])
]  # fmt: skip
BATCH = [{"id": "b", "custom_id": f"{k}", "response": {"status_code": 200, "body": one}, "error": None}
         for k, one in enumerate(RESPONSES)]  # fmt: skip
# https://huggingface.co/datasets/openbmb/UltraFeedback
ULTRA = {
    "source": "sharegpt", "instruction": "2+2?", "models": ["a", "b"], "completions": [
        {"model": "a", "principle": "honesty", "response": "4", "overall_score": 8.5, "annotations": {}},
        {"model": "b", "principle": "honesty", "response": "5", "overall_score": 3.0, "annotations": {}}],
}  # fmt: skip
# generate_data/whisper/generate_hp_dataset.py of https://github.com/Hypotheses-Paradise/Hypo2Trans
HYPORADISE = {"input": ["it is rain", "it is rains"], "output": "it is raining", "ac_score": [-0.25, -0.5]}
# scripts of https://github.com/NVIDIA/NeMo that transcribe a manifest, by two models
NEMO = [{"audio_filepath": f"{a}.wav", "duration": 2.5, "text": "it is raining", "pred_text": text}
        for text, a in [("it rains", 1), ("it is", 2), ("it rain", 1), ("is it", 2)]]  # fmt: skip
# https://github.com/k2-fsa/sherpa-onnx/pull/3953
SHERPA = {"text": "it rains", "tokens": ["it"], "timestamps": [0.5], "hypotheses": [
    {"text": "it rains", "tokens": ["it"], "timestamps": [0.5], "ys_log_probs": [-0.5, -0.25], "score": -0.75},
    {"text": "it rain", "tokens": ["it"], "timestamps": [0.5], "ys_log_probs": [-1.0], "score": -1.0}]}  # fmt: skip
# https://huggingface.co/datasets/allenai/reward-bench and allenai/reward-bench-2
REWARD_BENCH = {"prompt": "2+2?", "chosen": "4", "chosen_model": "a", "rejected": "5", "rejected_model": "b",
                "subset": "math", "id": 7}  # fmt: skip
REWARD_BENCH_2 = {"id": "7", "prompt": "2+2?", "chosen": ["4"], "rejected": ["5", "6", "7"], "num_correct": 1,
                  "num_incorrect": 3, "total_completions": 4, "models": ["human"], "subset": "Math"}  # fmt: skip
# https://huggingface.co/datasets/lmsys/chatbot_arena_conversations and stanfordnlp/SHP
ARENA = {"question_id": "7", "model_a": "a", "model_b": "b", "winner": "model_b",
         "conversation_a": [USER, {"role": "assistant", "content": "4"}],
         "conversation_b": [USER, {"role": "assistant", "content": "5"}]}  # fmt: skip
SHP = {"history": "2+2?", "human_ref_A": "4", "human_ref_B": "5", "labels": 1, "score_A": 7, "score_B": 2}
# https://platform.openai.com/docs/api-reference: completions, chats, and what batches of them give; of vLLM, a response
# to several prompts (``return_token_ids``)
COMPLETION = {
    "id": "cmpl-1", "object": "text_completion", "model": "m", "usage": {"prompt_tokens": 5}, "choices": [
        {"text": "\n\nThis is", "index": 0, "finish_reason": "length", "logprobs": {
            "tokens": ["This", " is", " a"], "token_logprobs": [None, -0.5, -0.25], "text_offset": [0, 4, 7]}},
        {"text": " No.", "index": 1, "finish_reason": "stop", "logprobs": {"token_logprobs": [-1, -2]}}],
}  # fmt: skip
CHAT = {
    "id": "chatcmpl-1", "object": "chat.completion", "choices": [
        {"index": k, "finish_reason": "stop", "message": {"role": "assistant", "content": text, "refusal": None},
         "logprobs": {"refusal": None, "content": [
             {"token": "Hello", "logprob": -0.5 - k, "bytes": [72], "top_logprobs": [{"token": "Hi", "logprob": -2}]},
             {"token": "!", "logprob": -0.25, "bytes": None, "top_logprobs": []}]}}
        for k, text in enumerate(("Hello!", "Hello?"))],
}  # fmt: skip
PLAIN = {"choices": [{"text": "a"}, {"message": {"content": "b"}, "logprobs": None}]}
BATCH_OF_CHATS = [{"id": f"batch_req_{name}", "custom_id": name, "error": None,
                   "response": {"status_code": 200, "body": CHAT}} for name in "pq"]  # fmt: skip
FAILED = BATCH_OF_CHATS[0] | {"response": None, "error": {"code": "x", "message": "out of time"}}
SEVERAL = {"choices": [{"text": f"{prompt}", "prompt_token_ids": [prompt]} for prompt in (1, 1, 2)]}
ANSWER, OTHER = {"role": "assistant", "content": "4"}, {"role": "assistant", "content": "5"}
PAIR = {"chosen": [USER, OTHER], "rejected": [USER, ANSWER], "score_chosen": 8.5, "score_rejected": 2}
PARALLEL = {"id": 7, "prompt": [USER], "responses": [[USER, ANSWER], [USER, OTHER]], "scores": [-0.5, -0.75],
            "gains": [1, 0], "models": ["a", "b"], "tags": ["x", "y", "z"], "reference": ["4", "four"]}  # fmt: skip

# Ids, texts, columns, scores of the first list, its answers, source and reference.
Found = tuple[list[str], list[str], tuple[str, ...], list[list[float]], Any, str | None, tuple[str, ...]]
FILES: dict[str, tuple[list[dict[str, Any]], Found]] = {
    "lm-evaluation-harness": (LM_EVAL, (
        ["0", "1", "2"], ["So 4.", "Is 2+2=5?", "4.0!"], ("score", "gain"), [[0, 1], [0, 0], [0, 1]], ["4", "5", "4"],
        "Question: 2+2?\nAnswer:", ())),
    "search-and-learn": ([SEARCH], (
        ["test/algebra/1.json"], SEARCH["completions"],
        ("score", "scores:min", "scores:mean", "scores:last", "scores:prod", "agg_scores", "completion_tokens", "gain"),
        [[0, 0.25, 0.375, 0.25, 0.125, 0.25, 9, 1], [0, 0.75, 0.75, 0.75, 0.75, 0.75, 3, 0]],
        ["0.5", "2"], "Half of one?", ())),
    "verifiers": (VERIFIERS, (
        ["0", "1"], ["So 4", "x 5"], ("score", "gain"), [[0, 1], [0, 0.25]], ["4", "5"], "Add.\n2+2?", ())),
    "verl": (VERL, (["0"], ["It is 5", "It is 4"], ("score", "gain"), [[0, -0.5], [0, 1]], ["5", "4"], "2+2?", ())),
    "verl with verdicts": ([one | {"acc": one["score"] > 0} for one in VERL], (
        ["0"], ["It is 5", "It is 4"], ("score", "gain"), [[0, 0], [0, 1]], ["5", "4"], "2+2?", ())),
    "math-evaluation-harness": ([HARNESS], (
        ["3"], HARNESS["code"], ("score", "gain"), [[0, 0], [0, 1]], ["5", "4"], "2+2?", ())),
    "flagembedding": ([{"query": "rain", "pos": ["wet"], "neg": ["dry", "a"], "neg_scores": [0, 2]}], (
        ["0"], ["a", "dry", "wet"], ("score", "gain"), [[0, 0], [0, 0], [0, 1]], None, "rain", ())),
    "rows with the right answer": ([{"problem": "2+2?", "generated_solution": f"So {k}", "expected_answer": "4",
                                     "predicted_answer": f"{k}"} for k in (5, 4)], (
        ["0"], ["So 5", "So 4"], ("score", "gain"), [[0, 0], [0, 1]], ["5", "4"], "2+2?", ())),
    "two verdicts that agree": ([{"task_id": "a", "solution": "x", "passed": False, "result": "failed"},
                                 {"task_id": "a", "solution": "y", "passed": True, "result": "passed"}], (
        ["a"], ["x", "y"], ("score", "gain"), [[0, 0], [0, 1]], None, None, ())),
    "vllm": ([VLLM], (
        ["7"], ["4", "5 or"], ("score", "length", "finish_length"), [[-0.5, 2, 0], [-1.5, 3, 1]], None, "2+2?", ())),
    "sglang": (SGLANG, (
        ["0"], ["4", "5"], ("score", "length", "finish_length"), [[-0.5, 2, 0], [-0.75, 2, 1]], None, "2+2?", ())),
    "responses": (RESPONSES, (
        ["resp_0", "resp_2"], ["It is 0", "It is 1"], ("score", "finish_length"), [[0, 0], [0, 1]], None, None, ())),
    "batch of responses": (BATCH, (
        ["0", "2"], ["It is 0", "It is 1"], ("score", "finish_length"), [[0, 0], [0, 1]], None, None, ())),
    "ultrafeedback": ([ULTRA], (["0"], ["4", "5"], ("score", "gain"), [[0, 8.5], [0, 3]], None, "2+2?", ())),
    "hyporadise": ([HYPORADISE], (
        ["0"], HYPORADISE["input"], ("score", "ac_score"), [[0, -0.25], [0, -0.5]], None, None, ("it is raining",))),
    "nemo": (NEMO, (
        ["1.wav", "2.wav"], ["it rains", "it rain"], ("score",), [[0], [0]], None, None, ("it is raining",))),
    "sherpa-onnx": ([SHERPA], (
        ["0"], ["it rains", "it rain"],
        ("score", "ys_log_probs:min", "ys_log_probs:mean", "ys_log_probs:last", "ys_log_probs:prod"),
        [[-0.75, -0.5, -0.375, -0.25, 0.125], [-1, -1, -1, -1, -1]], None, None, ())),
    "reward-bench": ([REWARD_BENCH], (["7"], ["4", "5"], ("score", "gain"), [[0, 1], [0, 0]], None, "2+2?", ())),
    "reward-bench-2": ([REWARD_BENCH_2], (
        ["7"], ["4", "5", "6", "7"], ("score", "gain"), [[0, 1], [0, 0], [0, 0], [0, 0]], None, "2+2?", ())),
    "hyporadise 2": ([{"source": ["it is", "it"], "target": "it rains", "source_score": [1, 2.5]}], (
        ["0"], ["it is", "it"], ("score", "source_score"), [[0, 1], [0, 2.5]], None, None, ("it rains",))),
    "chatbot arena": ([ARENA], (["7"], ["4", "5"], ("score", "gain"), [[0, 0], [0, 1]], None, "2+2?", ())),
    # https://huggingface.co/datasets/nvidia/HelpSteer3
    "helpsteer3": ([{"context": [USER], "response1": "4", "response2": "5", "overall_preference": -2, "domain": "x"}], (
        ["0"], ["4", "5"], ("score", "gain"), [[0, 1], [0, 0]], None, "2+2?", ())),
    # https://github.com/tatsu-lab/alpaca_eval, annotations
    "two outputs": ([{"instruction": "2+2?", "output_1": "5", "generator_1": "a", "output_2": "4", "generator_2": "b",
                      "preference": 2.0}], (
        ["0"], ["5", "4"], ("score", "gain"), [[0, 0], [0, 1]], None, "2+2?", ())),
    "two responses by letters": ([{"prompt": "2+2?", "response_a": "5", "lm_a": 2, "response_b": "4", "lm_b": 1,
                                   "winner": "model_b"}], (
        ["0"], ["5", "4"], ("score", "lm", "gain"), [[0, 2, 0], [0, 1, 1]], None, "2+2?", ())),
    "shp": ([SHP], (["0"], ["4", "5"], ("score", "gain"), [[0, 1], [0, 0]], None, "2+2?", ())),
    "openai": ([COMPLETION], (
        ["cmpl-1"], ["This is", "No."], ("score", "mean", "min", "length", "finish_length"),
        [[-0.75, -0.375, -0.5, 2, 1], [-3, -1.5, -2, 2, 0]], None, None, ())),
    "chat": ([CHAT], (
        ["chatcmpl-1"], ["Hello!", "Hello?"], ("score", "mean", "min", "length", "finish_length"),
        [[-0.75, -0.375, -0.5, 2, 0], [-1.75, -0.875, -1.5, 2, 0]], None, None, ())),
    "batch of chats": (BATCH_OF_CHATS, (
        ["p", "q"], ["Hello!", "Hello?"], ("score", "length"), [[-0.75, 2], [-1.75, 2]], None, None, ())),
    "without log probabilities": ([PLAIN], (["0"], ["a", "b"], ("score",), [[0], [0]], None, None, ())),
    "preferences": ([PAIR], (["0"], ["4", "5"], ("score", "gain"), [[0, 0], [0, 1]], None, "2+2?", ())),
    "texts of outputs": (
        [{"question": "2+2?", "outputs": ["4", "5"], "logprobs": ["-0.5", "-1"], "correct": [True, False]}], (
        ["0"], ["4", "5"], ("score", "logprobs", "gain"), [[0, -0.5, 1], [0, -1, 0]], None, "2+2?", ())),
    "verdicts beside a form": ([{**VLLM, "is_correct": [True, False]}], (
        ["7"], ["4", "5 or"], ("score", "length", "finish_length", "gain"), [[-0.5, 2, 0, 1], [-1.5, 3, 1, 0]], None,
        "2+2?", ())),
    "texts of choices": ([{"question": "2+2?", "choices": ["4", "5"], "answer": 1}], (
        ["0"], ["4", "5"], ("score", "gain"), [[0, 0], [0, 1]], None, "2+2?", ())),
    "documents": ([{"query": "rain", "docs": [{"doc_id": "a", "f1": 2, "relevance": 0},
                                              {"doc_id": "b", "f1": 1, "relevance": 3}]}], (
        ["0"], ["a", "b"], ("score", "f1", "gain"), [[0, 2, 0], [0, 1, 3]], None, "rain", ())),
    "rows of documents": ([{"qid": name, "pid": k, "bm25": f"{k}.5", "relevance": k}
                           for name in "pq" for k in (0, 1)], (
        ["p", "q"], ["0", "1"], ("score", "bm25", "gain"), [[0, 0.5, 0], [0, 1.5, 1]], None, None, ())),
    "tokens beside a measure": ([{"id": "u", "candidates": [["it", "rains"], ["it"]], "wer": [0, 0.5],
                                  "reference": ["it", "rains"]}], (
        ["u"], ["it rains", "it"], ("score",), [[0], [0]], None, None, ("it rains",))),
    "a list within": ([{"id": name, "result": {"candidates": ["x", "y"]}, "reference": "x"} for name in "pq"], (
        ["p", "q"], ["x", "y"], ("score",), [[0], [0]], None, None, ("x",))),
    "lists by their ids": ([{"p": [{"response": "4", "passed": True}, {"response": "5", "passed": False}],
                             "q": [{"response": "6", "passed": False}]}], (
        ["p", "q"], ["4", "5"], ("score", "gain"), [[0, 1], [0, 0]], None, None, ())),
    "the list of an id within": ([{"date": "x", "eval": {"p": [{"task_id": "p", "solution": "4", "passed": True},
                                                               {"task_id": "p", "solution": "5", "passed": False}]}}], (
        ["p"], ["4", "5"], ("score", "gain"), [[0, 1], [0, 0]], None, None, ())),
    "lists under one key": ([{"meta": {"n": 2}, "results": [
        {"id": "p", "outputs": ["x", "y"], "best": 1}, {"id": "q", "outputs": ["x", "y"], "best": 1}]}], (
        ["p", "q"], ["x", "y"], ("score", "gain"), [[0, 0], [0, 1]], None, None, ())),
    "rows under one key": ([{"config": {}, "data": [
        {"prompt": p, "response": r, "correct": p == "q"} for p, r in ("px", "qx", "qy", "py")]}], (
        ["0", "1"], ["x", "y"], ("score", "gain"), [[0, 0], [0, 0]], None, "p", ())),
    "options by letters": ([{"question": "2+2?", "choices": ["5", "4", "6", "4"], "gold": "four", "answer": "B"}], (
        ["0"], ["5", "4", "6", "4"], ("score", "gain"), [[0, 0], [0, 1], [0, 0], [0, 1]], None, "2+2?", ())),
    "a response within": ([{"id": "q", "request": {"n": 2}, "response": PLAIN, "answer": "b"}], (
        ["q"], ["a", "b"], ("score", "gain"), [[0, 0], [0, 1]], ["a", "b"], None, ())),
    "scores before texts": ([{"id": "u", "nbest": [[-1, "it rains"], [-2, "it rain"]], "ref": "it rains"}], (
        ["u"], ["it rains", "it rain"], ("score",), [[-1], [-2]], None, None, ("it rains",))),
    # https://github.com/facebookresearch/DPR: what its retriever writes
    "passages": ([{"question": "2+2?", "answers": ["4"], "ctxs": [
        {"id": "a", "title": "t", "text": "x", "score": "2.5", "has_answer": False},
        {"id": "b", "title": "t", "text": "y 4", "score": "1.5", "has_answer": True}]}], (
        ["0"], ["x", "y 4"], ("score", "gain"), [[2.5, 0], [1.5, 1]], None, "2+2?", ())),
    "rows of one document": ([{"system": name, "doc": "d", "source": f"s{k}", "target": f"{name}{k}", "score": score}
                              for k in (1, 2) for score, name in enumerate("xy")], (
        ["0", "1"], ["x1", "y1"], ("score",), [[0], [1]], None, "s1", ())),
    # https://huggingface.co/datasets/openai/webgpt_comparisons
    "two answers": ([{"question": "2+2?", "answer_0": "5", "score_0": -1, "answer_1": "4", "score_1": 1}], (
        ["0"], ["5", "4"], ("score",), [[-1], [1]], None, "2+2?", ())),
    # https://huggingface.co/datasets/openai/summarize_from_feedback
    "a choice": ([{"info": {"post": "p"}, "summaries": [{"text": "x"}, {"text": "y"}], "choice": 1}], (
        ["0"], ["x", "y"], ("score", "gain"), [[0, 0], [0, 1]], None, None, ())),
    "what was selected": ([{"question": "2+2?", "answers": [
        {"text": "x", "pm_score": 3, "selected": False}, {"text": "y", "pm_score": 1, "selected": True}]}], (
        ["0"], ["x", "y"], ("pm_score", "gain"), [[3, 0], [1, 1]], None, "2+2?", ())),
    "objects by their ids": ([{"p": {"hyps": [{"text": "x", "am": 2}], "ref": "x"}, "q": {"hyps": [], "ref": "y"},
                               "r": {"hyps": [{"text": "z", "am": 1}], "ref": "z"}}], (
        ["p", "q", "r"], ["x"], ("am",), [[2]], None, None, ("x",))),
    "objects by their ids within": ([{"utts": {name: {"nbest": ["x", "y"], "ref": "x"} for name in "pq"}}], (
        ["p", "q"], ["x", "y"], ("score",), [[0], [0]], None, None, ("x",))),
    # https://developers.deepgram.com: a response, with what was asked
    "a response far within": ([{"id": name, "results": {"channels": [{"alternatives": [
        {"transcript": "it", "confidence": 0.5}, {"transcript": "is", "confidence": 0.25}]}]}} for name in "pq"], (
        ["p", "q"], ["it", "is"], ("confidence",), [[0.5], [0.25]], None, None, ())),
    "truth by id": ([{"mention": "x", "candidates": [{"id": "Q1", "label": "y", "prior": 0.5},
                                                     {"id": "Q2", "label": "z", "prior": 0.25}], "gold_id": "Q2"}], (
        ["x"], ["y", "z"], ("prior", "gain"), [[0.5, 0], [0.25, 1]], None, None, ())),
    "endings": ([{"ctx": "It", "endings": ["is", "rains"], "label": "1"}], (
        ["0"], ["is", "rains"], ("score", "gain"), [[0, 0], [0, 1]], None, None, ())),
    "answers beside texts": ([{"problem": "2+2?", "responses": ["So 4", "5?"], "extracted": ["4", "5"], "answer": 4,
                               "correct": [True, False]}], (
        ["0"], ["So 4", "5?"], ("score", "gain"), [[0, 1], [0, 0]], ["4", "5"], "2+2?", ())),
    "references in objects": ([{"id": "u", "hyps": ["x", "y"], "references": [{"text": "y", "by": "a"}]}], (
        ["u"], ["x", "y"], ("score",), [[0], [0]], None, None, ("y",))),
    # https://inspect.aisi.org.uk/eval-logs.html: a log with two epochs
    "inspect": ([{"id": k, "epoch": epoch, "input": f"{k}+2?", "target": f"{k + 2}",
                  "output": {"choices": [{"message": {"role": "assistant", "content": f"So {epoch + 3}"}}]}}
                 for k in (2, 3) for epoch in (1, 2)], (
        ["2", "3"], ["So 4", "So 5"], ("score", "gain"), [[0, 1], [0, 0]], ["4", "5"], "2+2?", ())),
    "helpsteer2": ([{"prompt": "2+2?", "response_1": "4", "response_2": "5", "preference_strength": -2}], (
        ["0"], ["4", "5"], ("score", "gain"), [[0, 1], [0, 0]], None, "2+2?", ())),
    # https://huggingface.co/datasets/mteb/stackoverflowdupquestions-reranking; https://github.com/texttron/tevatron
    "positives": ([{"query": "rain", "positive": ["wet"], "negative": ["dry", "a"]}], (
        ["0"], ["a", "dry", "wet"], ("score", "gain"), [[0, 0], [0, 0], [0, 1]], None, "rain", ())),
    "tevatron": ([{"query_id": "7", "query": "rain", "positive_passages": [{"docid": "d1", "text": "wet"}],
                   "negative_passages": [{"docid": "d2", "text": "dry"}]}], (
        ["0"], ["dry", "wet"], ("score", "gain"), [[0, 0], [0, 1]], None, "rain", ())),
    # https://ai.google.dev/api/generate-content
    "parts": ([{"response": {"candidates": [
        {"content": {"parts": [{"text": "It is "}, {"text": text}], "role": "model"}, "finishReason": "STOP",
         "avgLogprobs": k} for k, text in enumerate("45")]}} for _ in range(2)], (
        ["0", "1"], ["It is 4", "It is 5"], ("avgLogprobs",), [[0], [1]], None, None, ())),
    # https://docs.cohere.com/reference/rerank
    "documents within": ([{"id": "r", "results": [{"index": k, "relevance_score": 1 - k, "document": {"text": text}}
                                                  for k, text in enumerate("xy")]}], (
        ["r"], ["x", "y"], ("relevance_score",), [[1], [0]], None, None, ())),
    # https://docs.llamaindex.ai: a response
    "nodes": ([{"source_nodes": [{"node": {"id_": "a", "text": text}, "score": k, "class_name": "NodeWithScore"}
                                 for k, text in enumerate("xy")]}], (
        ["0"], ["x", "y"], ("score",), [[0], [1]], None, None, ())),
    # https://github.com/castorini/rank_llm: a request
    "documents beside their ids": ([{"query": {"text": "rain", "qid": 7}, "candidates": [
        {"docid": f"d{k}", "score": k, "doc": {"contents": text}} for k, text in enumerate("xy")]}], (
        ["0"], ["x", "y"], ("score",), [[0], [1]], None, "rain", ())),
    # https://www.elastic.co/docs: a response
    "hits": ([{"took": 3, "hits": {"total": {"value": 2}, "hits": [
        {"_id": f"d{k}", "_score": k, "_source": {"title": "t", "body": text}} for k, text in enumerate("xy")]}}], (
        ["0"], ["x", "y"], ("_score",), [[0], [1]], None, None, ())),
    # https://www.promptfoo.dev/docs/configuration/outputs
    "rows far within": ([{"evalId": "e", "results": {"prompts": [{"raw": "q"}], "results": [
        {"prompt": {"raw": p}, "response": {"output": f"{p}{k}"}, "success": k > 0, "latencyMs": k}
        for p in "pq" for k in (0, 1)]}}], (
        ["0", "1"], ["p0", "p1"], ("latencyMs", "gain"), [[0, 0], [1, 1]], None, None, ())),
    # https://github.com/stanford-crfm/helm: scenario_state.json
    "lists far within": ([{"adapter_spec": {}, "request_states": [
        {"instance": {"id": name}, "result": {"success": True, "completions": [{"text": "x"}, {"text": "y"}]}}
        for name in "pq"]}], (["0", "1"], ["x", "y"], ("score",), [[0], [0]], None, None, ())),
    # https://docs.aws.amazon.com/transcribe
    "alternatives of segments": ([{"results": {"transcripts": [{"transcript": "x x"}], "segments": [
        {"alternatives": [{"transcript": "x"}, {"transcript": "y"}]} for _ in range(2)]}, "status": "COMPLETED"}], (
        ["0", "1"], ["x", "y"], ("score",), [[0], [0]], None, None, ())),
    # https://github.com/Unbabel/COMET: comet-score --to_json
    "systems by their names": ([{name: [{"src": f"s{k}", "mt": f"{name}{k}", "ref": "r", "COMET": k} for k in (1, 2)]
                                 for name in "xy"}], (
        ["0", "1"], ["x1", "y1"], ("score",), [[0], [0]], None, "s1", ("r",))),
    # https://github.com/google/wmt-mqm-human-evaluation
    "segments of documents": ([{"system": name, "doc_id": 7, "seg_id": k, "source": f"s{k}", "target": f"{name}{k}"}
                               for name in "xy" for k in (1, 2)], (
        ["0", "1"], ["x1", "y1"], ("score",), [[0], [0]], None, "s1", ())),
    "references as candidates": ([{"hypotheses": ["x", "y"], "references": ["x", "y"], "utilities": [1, 2]}], (
        ["0"], ["x", "y"], ("utilities",), [[1], [2]], None, None, ())),
    "ids of candidates beside": ([{"mention": "m", "candidates": ["x", "y"], "candidate_ids": [8, 9]}], (
        ["0"], ["x", "y"], ("score",), [[0], [0]], None, None, ())),
    # https://huggingface.co/datasets/open-r1/OpenR1-Math-220k
    "sources of data sets": ([{"problem": f"{k}+2?", "source": "aops", "generations": ["4", "5"], "correct": [k, 0]}
                              for k in (1, 0)], (
        ["0", "1"], ["4", "5"], ("score", "gain"), [[0, 1], [0, 0]], None, "1+2?", ())),
    # https://solr.apache.org/guide
    "docs of a response": ([{"responseHeader": {"status": 0}, "response": {"numFound": 2, "docs": [
        {"id": "a", "text": "x", "score": 2}, {"id": "b", "text": "y", "score": 1}]}}], (
        ["0"], ["x", "y"], ("score",), [[2], [1]], None, None, ())),
    "references of several names": ([{"src": "s", "refs": ["r", "t"], "mts": ["x", "y"]}], (
        ["0"], ["x", "y"], ("score",), [[0], [0]], None, "s", ("r", "t"))),
    "options by numbers": ([{"stem": f"{k}", "options": ["x", "y"], "answer_key": f"{k}"} for k in (2, 1)], (
        ["0", "1"], ["x", "y"], ("score", "gain"), [[0, 0], [0, 1]], None, None, ())),
    "parallel": ([PARALLEL], (
        ["7"], ["4", "5"], ("score", "gain"), [[-0.5, 1], [-0.75, 0]], None, "2+2?", ("4", "four"))),
}  # fmt: skip


def rows(path: Path, items: list[Any] | Any, array: bool = False, **options: Any) -> list[Lists]:
    text = json.dumps(items, indent=1) if array else "".join(json.dumps(item) + "\n" for item in items)
    path.write_text(text)
    return list(make_reader({"name": "jsonl", **options}, "").read(path))


@pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
@pytest.mark.parametrize("name", FILES)
def test_forms(name: str, array: bool, tmp_path: Path) -> None:
    items, (ids, texts, columns, scores, answers, source, references) = FILES[name]
    found = rows(tmp_path / "lists", items, array)
    assert [one.id for one in found if one.problem is None] == ids
    one, *_ = rerank.read(tmp_path / "lists")
    assert [text.decode() for text in one.rows.texts] == texts
    assert set(one.rows.names) >= set(columns)
    assert one.rows.scores[:, [one.rows.names.index(name) for name in columns]].tolist() == scores
    assert [answer and answer.decode() for answer in one.rows.answers or []] == (answers or [])
    assert (one.source, tuple(one.references)) == (source, references)
    dicts, *_ = rerank.read(items)
    assert (dicts.id, dicts.rows.texts) == (one.id, one.rows.texts)
    with (tmp_path / "written").open("wb") as out:
        for nbest in found:
            make_reader("jsonl", "").write(out, nbest)
    again, *_ = rerank.read(tmp_path / "written")
    assert (again.id, again.rows.texts, again.rows.scores.tolist(), again.rows.answers, again.source) == (
        one.id, one.rows.texts, one.rows.scores.tolist(), one.rows.answers, one.source,
    )  # fmt: skip


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["verifiers", "hyporadise"])
def test_forms_come_through_pipes(name: str, compress: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    items, (ids, texts, *_) = FILES[name]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(compress(json.dumps(items).encode()))))
    found = list(rerank.read("-"))
    assert [one.id for one in found] == ids
    assert [candidate.text for candidate in found[0].candidates] == texts


def test_every_form_has_a_sample() -> None:
    seen = [FILES[name][0][0] for name in FILES]
    assert all(any(form.keys.keys() <= one.keys() for one in seen) for form in FORMS)


def gains(nbest: Any) -> list[float]:
    return [float(value) for value in nbest.scores[:, nbest.names.index("gain")]]


def test_answers_that_a_filter_gives_for_each_response_and_metrics_of_each(tmp_path: Path) -> None:
    _, two, three = rows(tmp_path / "lists", LM_EVAL)
    assert (two.answers, gains(two)) == ([b"4", b"5", None], [1, 0, 0])
    assert (three.answers, gains(three)) == ([b"4", b"4"], [0, 1])
    one, two = rows(tmp_path / "lists", [
        logged(0, ["x"], ["4"], "none", exact_match=False),
        logged(1, ["x"], ["4"], "none", bypass=999, metrics=["bypass"]),
    ])  # fmt: skip
    assert (gains(one), gains(two)) == ([0], [1])


@pytest.mark.parametrize(
    ("target", "rule", "texts", "right"),
    [
        ("1,000", None, ["It is 1000.0, or 2?", "1e3"], [0, 1]),
        ("$18", None, ["18 dollars", "\\boxed{18} of 20"], [1, 1]),
        ("(C)", None, ["Of A and C: C.", "A"], [1, 0]),
        ("Paris", None, ["paris.", "In Paris"], [1, 0]),
        ("$\\boxed{(1, x)}$", None, ["\\boxed{(1,  x)} or 2", "(1, x)", "(1, X)", "\\boxed{(1, X)}"], [1, 1, 0, 0]),
        ("4", "boxed", ["\\boxed{4} or 5", "4"], [1, 0]),
        ("4", "json:a", ['{"a": 4.0} 5', "4"], [1, 0]),
        ("(c)", "regex:is (.*)", ["it is (c)", "it is c"], [1, 0]),
    ],
)
def test_the_right_answer_says_how_others_are_found(
    target: str, rule: str | None, texts: list[str], right: list[int], tmp_path: Path
) -> None:
    item = {"problem": "?", "completions": texts, "answer": target}
    (one,) = rows(tmp_path / "lists", [item], answer=rule)
    assert gains(one) == right
    (nbest,) = rerank.read(tmp_path / "lists", answer=rule) if rule else rerank.read(tmp_path / "lists")
    assert list(nbest.gains or ()) == right


def test_scores_of_rubrics_are_columns_where_they_are_named(tmp_path: Path) -> None:
    one, _ = rows(tmp_path / "lists", VERIFIERS, dense=["format"], labels=["task"])
    assert (one.names, one.sparse.names) == (("score", "format", "gain"), [b"task=default"] * 2)


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize("first", [0, 1])
def test_places_are_counted_from_where_they_fit(first: int, kind: type, tmp_path: Path) -> None:
    items = [{"prompt": f"p{k}", "responses": ["x", "y", "z"], "best": kind(k % 3 + first)} for k in range(6)]
    found = rows(tmp_path / "lists", items)
    assert [gains(one).index(1.0) for one in found] == [0, 1, 2, 0, 1, 2]
    roles = found[0].roles
    assert roles.found["best"] == ("ordinal" if first else "truth")


def test_roles_reach_into_objects_and_say_which_keys_are_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = [{"text": "x", "about": {"p": 2, "ok": True}}, {"text": "y", "about": {"p": 1, "ok": False}}]
    items = [{"q": "?", "out": out}]
    (one,) = rows(tmp_path / "lists", items, roles={"about.ok": "gain", "about.p": "column", "lm": "column"})
    assert (one.names, one.scores.tolist()) == (("score", "gain", "about.p"), [[0, 1, 2], [0, 0, 1]])
    assert [record.getMessage().partition(";")[0] for record in caplog.records if record.levelname == "WARNING"] == [
        f"{tmp_path / 'lists'}: 'lm' is missing, the column in roles"
    ]
    rows(tmp_path / "plain", [{"candidates": ["x", "y"]}], roles={"typo": "gain"})
    assert "'typo' is missing" in caplog.text
    items = [{"on": {"q": "?"}, "said": {"a": text}} for text in "xy"]
    (one,) = rows(tmp_path / "lists", items, roles={"on.q": "group", "said.a": "text"})
    assert one.texts == [b"x", b"y"]
    (one,) = rows(
        tmp_path / "lists", [{"mc": {"of": ["x", "y"], "ok": [1, 0]}}], roles={"mc.of": "candidates", "mc.ok": "gain"}
    )
    assert gains(one) == [1, 0]
    tokens = {"hyps": [{"tokens": ["a", "b"]}, {"tokens": ["a", "c"]}], "said": ["a", "c"]}
    (one,) = rows(tmp_path / "lists", [tokens], roles={"hyps": "candidates", "tokens": "text", "said": "reference"})
    assert ([*one.texts], [*one.references]) == ([b"a b", b"a c"], [b"a c"])


@pytest.mark.parametrize("kind", [int, str])
def test_a_right_answer_that_is_a_small_number_is_no_place(kind: type, tmp_path: Path) -> None:
    samples = [f"The answer is {k}." for k in (3, 1, 2, 2)]
    items = [{"q": f"{k}", "samples": samples, "answer": kind(k % 3 + 1)} for k in range(9)]
    one, two, *_ = rows(tmp_path / "lists", items)
    assert (gains(one), gains(two)) == ([0, 1, 0, 0], [0, 0, 1, 1])


@pytest.mark.parametrize("names", ["sentence1 sentence2", "text_a text_b"])
def test_pairs_that_are_compared_are_no_lists(names: str, tmp_path: Path) -> None:
    for one in rows(tmp_path / "lists", [dict.fromkeys(names.split(), "x") | {"label": k % 2} for k in range(9)]):
        assert one.problem is not None


@pytest.mark.parametrize("key", ["segments", "tokens", "words", "steps", "turns", "tags"])
@pytest.mark.parametrize("same", [False, True])
def test_parts_of_one_text_are_no_candidates(key: str, same: bool, tmp_path: Path) -> None:
    key = "judge" if same else key  # whatever all have is of none
    items = [{"id": str(k), "text": "it rains", key: ["it", "rains" if same else f"{k}"]} for k in range(3)]
    assert all(one.problem is not None for one in rows(tmp_path / "lists", items))


def test_a_message_names_few_keys(tmp_path: Path) -> None:
    (one,) = rows(tmp_path / "lists", [{f"key{k}": k for k in range(10_000)}])
    assert len(one.problem.message) < 500


def test_how_many_are_right_is_no_place(tmp_path: Path) -> None:
    items = [{"prompt": f"p{k}", "samples": ["x", "y", "z"], "correct": k % 4} for k in range(12)]
    one, *_ = rows(tmp_path / "lists", items)
    assert "gain" not in one.names
    assert "correct" in one.roles.unused


def test_where_places_are_counted_from_is_said_or_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    items = [{"prompt": "p", "responses": ["x", "y", "z"], "best": 1}]
    (one,) = rows(tmp_path / "lists", items)
    assert gains(one) == [0, 1, 0]
    assert "if 1: --roles best=ordinal" in caplog.text
    (one,) = rows(tmp_path / "lists", [{**items[0], "best": 2}], roles={"best": "ordinal"})
    assert gains(one) == [0, 1, 0]


def test_models_are_labels(tmp_path: Path) -> None:
    for item, label in ((REWARD_BENCH, "model"), (ULTRA, "model"), (PARALLEL, "models")):
        (one,) = rows(tmp_path / "lists", [item], labels=[label])
        assert one.sparse.names == [f"{label}=a".encode(), f"{label}=b".encode()]


@pytest.mark.parametrize("item", [PAIR, PAIR | {"rejected": ["4", "22"], "score_rejected": [2, 1.5], "prompt": "2+2?"}])
def test_numbers_of_preferences_are_what_roles_say(item: dict[str, Any], tmp_path: Path) -> None:
    (one,) = rows(tmp_path / "lists", [item], roles={"score": "gain"})
    texts, found = (["4", "5"], [2, 8.5]) if item is PAIR else (["22", "4", "5"], [1.5, 2, 8.5])
    assert [text.decode() for text in one.texts] == texts
    assert (gains(one), one.source) == (found, b"2+2?")
    (one,) = rows(tmp_path / "lists", [item], dense=["score"])
    assert (one.base.tolist(), gains(one)) == (found, [0.0] * (len(texts) - 1) + [1.0])


def test_a_choice_without_log_probabilities_is_bad_beside_others(tmp_path: Path) -> None:
    broken: list[Any] = [{"text": "x"}, {"text": "x", "logprobs": 1}, {"text": "x", "logprobs": {"content": ["y"]}}]
    broken += [{"text": "x", "logprobs": [float("-inf")]}, {"message": {"content": None}, "logprobs": [-1]}]
    _, one = rows(tmp_path / "lists", [CHAT, {"id": "2", "choices": [*CHAT["choices"], *broken]}])  # type: ignore[misc]
    assert [(bad.reason, bad.place) for bad in one.bad] == [("score", k) for k in range(2, 6)] + [("text", 6)]


@pytest.mark.parametrize(
    ("item", "reason", "message"),
    [
        (SEARCH | {"scores": [[0.5]]}, "columns", "found 1 entries under 'scores'; expected one for each of 2 texts"),
        (FAILED, "text", 'the request has no response: "out of time"; send it again'),
        (SEVERAL, "text", "the choices are answers to 2 prompts; send every prompt in a request of its own"),
        ({"choices": [{"index": 0, "delta": {"content": "a"}}]}, "text", "choice 1 is a piece of a stream; ask for"),
        ({"chosen": [USER, OTHER], "rejected": [USER, ANSWER, USER, OTHER]}, "text", "come after different messages"),
        ({"chosen": 4, "rejected": [{"a": 1}]}, "text", "found 4; expected candidate 1 as a string"),
        (SEARCH | {"agg_scores": 7}, "columns", "found 7 under 'agg_scores'; expected one for each of 2 texts"),
        (SEARCH | {"completions": [1, 2]}, "text", "found 1; expected candidate 1 as a string"),
        (LM_EVAL[0] | {"resps": [[["-1.5", "False"]], [["-2", "True"]]]}, "text", "are log probabilities of given"),
        (LM_EVAL[0] | {"arguments": [["a", " b"]], "resps": [["-1.5", "False"]]}, "text", "are log probabilities of"),
        (RESPONSES[0] | {"error": {"message": "busy"}}, "text", 'the request has no response: "busy"; send it again'),
        ({"candidates": [["a"]], "reference": ["a"], "references": ["a b"]}, "text", "expected one of them"),
        (VLLM | {"outputs": [{"index": 0}]}, "text", "candidate 1 has no 'text'; if it stands under"),
        (SGLANG[0] | {"meta_info": {"output_token_logprobs": ["x"]}}, "score", "found a list; expected 'score' of"),
    ],
)
def test_faults(item: dict[str, Any], reason: str, message: str, tmp_path: Path) -> None:
    (bad,) = rows(tmp_path / "lists", [item])
    assert (bad.problem.reason, bad.line) == (reason, 1)
    assert message in bad.problem.message


def test_a_pattern_that_never_ends_and_nan_are_errors_with_their_line(tmp_path: Path) -> None:
    slow = SEARCH | {"completions": ["a" * 60 + "b", "b"]}
    (bad,) = rows(tmp_path / "lists", [slow], answer="regex:(a|aa)+$")
    assert "takes more than 1 s with a candidate; expected a pattern that ends sooner" in bad.problem.message
    (tmp_path / "lists").write_text("\n" + json.dumps(SEARCH | {"agg_scores": [0.5, float("nan")]}))
    with pytest.raises(DataError, match=r"lists:2: .*found NaN; expected 'agg_scores' of candidate 2 as a finite"):
        list(rerank.read(tmp_path / "lists"))


def mutated(value: Any, draw: random.Random) -> Any:
    """A JSON value in which some parts are others, or missing."""
    if draw.random() < 0.05:
        return draw.choice([None, 0, 1.5, True, "", [], {}, [0.5], {"a": 1}, [[]], float("nan"), ["a", 1], 10**400])
    if isinstance(value, dict):
        return {key: mutated(part, draw) for key, part in value.items() if draw.random() > 0.02}
    return [mutated(part, draw) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", FILES)
def test_whatever_is_in_an_object_is_read_or_a_bad_list(name: str, tmp_path: Path) -> None:
    draw, read = random.Random(name), 0
    for _ in range(100):
        items = [{key: mutated(value, draw) for key, value in item.items()} for item in FILES[name][0]]
        found = rows(tmp_path / "lists", items)
        read += sum(one.problem is None for one in found)
    assert read
