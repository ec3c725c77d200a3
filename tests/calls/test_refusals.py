"""Which parameter an endpoint refuses: the words of each family, and words that refuse none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mustsee.calls.refusals import Change, adapt_request, refused_parameters, values_sent

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AA", "detail": "auto"}}
SENT: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": [IMAGE, {"type": "text", "text": "seed? stop."}]}],
    "temperature": 0.0,
    "top_p": 1.0,
    "seed": 7,
    "max_completion_tokens": 512,
    "reasoning_effort": "low",
    "logprobs": True,
    "top_logprobs": 5,
    "response_format": {"type": "json_schema"},
    "stop": ["x"],
    "n": 1,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "top_k": 20,
    "thinking_budget": 100,
}
OLD = {**{k: v for k, v in SENT.items() if k != "max_completion_tokens"}, "max_tokens": 512}


def openai(message: str, param: str | None, code: str | None, kind: str = "") -> dict[str, Any]:
    kind = kind or "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def gemini(*names: str) -> list[Any]:
    said = [f'Invalid JSON payload received. Unknown name "{n}": Cannot find field.' for n in names]
    found = [{"description": each} for each in said]
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": found}]
    error = {"code": 400, "message": "\n".join(said), "status": "INVALID_ARGUMENT"}
    return [{"error": {**error, "details": details}}]


def extra(name: str, **more: Any) -> dict[str, Any]:
    said = "Extra inputs are not permitted"
    return {"type": "extra_forbidden", "loc": ["body", name], "msg": said, "input": 512, **more}


def in_python(name: str, kind: str = "extra_forbidden") -> str:
    said = "Extra inputs are not permitted"
    return f"[{{'type': '{kind}', 'loc': ('body', '{name}'), 'msg': '{said}', 'input': 8192}}]"


def vllm(message: str, param: str | None = None) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "param": param,
            "code": 400}  # fmt: skip


WITH_MODEL = "with this model"
ONE_OF = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
THINKS = (
    "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please "
    "consult our documentation at https://platform.example.com/docs/extended-thinking"
)
LIMIT = {"max_completion_tokens": "max_tokens"}
REFUSED: list[tuple[str, int, Any, Any]] = [
    # OpenAI and Azure
    ("openai temperature", 400, openai(
        f"Unsupported value: 'temperature' does not support 0 {WITH_MODEL}. Only the default (1) "
        "value is supported.", "temperature", "unsupported_value"), ["temperature"]),
    ("openai temperature unnamed", 400, openai(
        f"Unsupported parameter: 'temperature' is not supported {WITH_MODEL}.", None, None),
        ["temperature"]),
    ("openai effort", 400, openai(
        f"Unsupported value: 'reasoning_effort' does not support 'low' {WITH_MODEL}. Supported "
        "values are: 'medium'.", "reasoning_effort", "unsupported_value"), ["reasoning_effort"]),
    ("openai effort unknown", 400, openai(
        "Unrecognized request argument supplied: reasoning_effort", None, None),
        ["reasoning_effort"]),
    ("openai responses", 400, openai(
        "Unsupported parameter.", "reasoning.effort", "unsupported_parameter"),
        ["reasoning_effort"]),
    ("openai logprobs", 403, openai(
        "You are not allowed to request logprobs from this model", None, None), ["logprobs"]),
    ("openai stop", 400, openai(
        f"Unsupported parameter: 'stop' is not supported {WITH_MODEL}.", "stop",
        "unsupported_parameter"), ["stop"]),
    ("openai n", 400, openai(
        f"Unsupported value: 'n' does not support 4 {WITH_MODEL}. Only the default (1) value is "
        "supported.", "n", "unsupported_value"), ["n"]),
    ("openai penalty", 400, openai(
        f"Unsupported parameter: 'presence_penalty' is not supported {WITH_MODEL}.",
        "presence_penalty", "unsupported_parameter"), ["presence_penalty"]),
    ("openai schema", 400, openai(
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported "
        f"{WITH_MODEL}.", "response_format", None), ["response_format"]),
    ("openai detail", 400, openai(
        "Unknown parameter: 'messages[0].content[0].image_url.detail'.",
        "messages[0].content[0].image_url.detail", "unknown_parameter"), ["detail"]),
    ("azure limit", 400, openai(
        "Unrecognized request argument supplied: max_completion_tokens", None, None), LIMIT),
    ("azure several", 400, openai(
        "Unrecognized request arguments supplied: frequencyPenalty, presencePenalty, topP", None,
        None), ["frequency_penalty", "presence_penalty", "top_p"]),
    ("azure short", 400, openai("Unrecognized request arguments supplied: n, stop", None, None),
        ["n", "stop"]),
    # Anthropic, and what passes its words on
    ("anthropic pair", 400, {"type": "error", "error": {
        "type": "invalid_request_error", "message": ONE_OF}}, ["top_p"]),
    ("anthropic pair by litellm", 400, openai(
        'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":'
        f'"invalid_request_error","message":"{ONE_OF}"}}}}. Received Model Group=claude\n'
        "Available Model Group Fallbacks=None", None, "400"), ["top_p"]),
    ("anthropic thinking", 400, openai(THINKS, None, None), ["temperature"]),
    ("anthropic deprecated", 400, openai(
        "`temperature` is deprecated for this model.", None, None), ["temperature"]),
    ("bedrock", 400, {"message": "This model doesn't support the temperature field. Remove "
                                 "temperature and try again."}, ["temperature"]),
    ("bedrock extraneous", 400, {"message": "Malformed input request: #: extraneous key [seed] is "
                                            "not permitted, please reformat your input"}, ["seed"]),
    # Gemini
    ("gemini seed", 400, gemini("seed"), ["seed"]),
    ("gemini two", 400, gemini("frequency_penalty", "seed"), ["frequency_penalty", "seed"]),
    ("gemini logprobs", 400, [{"error": {
        "code": 400, "message": "Logprobs is not enabled for models/gemini-2.5-pro",
        "status": "INVALID_ARGUMENT"}}], ["logprobs"]),
    ("gemini penalty", 400, [{"error": {
        "code": 400, "message": "Penalty is not enabled for this model"}}],
        ["frequency_penalty", "presence_penalty"]),
    # Mistral
    ("mistral limit", 422, {
        "object": "error", "message": {"detail": [extra("max_completion_tokens")]},
        "type": "invalid_request_error", "param": None, "code": None}, LIMIT),
    ("mistral in a text", 422, {
        "object": "error",
        "message": json.dumps({"detail": [extra("frequency_penalty", url="https://errors/x")]}),
        "type": "internal_error_proxy", "param": None, "code": "1000"}, ["frequency_penalty"]),
    ("mistral twice", 422, {
        "object": "Error", "detail": [extra("seed")], "message": [extra("seed")], "code": 3001},
        ["seed"]),
    # vLLM, SGLang, TGI, llama.cpp, Ollama
    ("vllm repr", 400, vllm(in_python("max_completion_tokens")), LIMIT),
    ("vllm param", 400, {"error": vllm("invalid", "seed")}, ["seed"]),
    ("vllm gaudi", 400, {"error": vllm(
        "Gaudi doesn't support logprobs. Please remove 'logprobs'/'top_logprobs' from your "
        "request to receive a response.")}, ["logprobs", "top_logprobs"]),
    ("sglang repr", 400, vllm(in_python("top_k")), ["top_k"]),
    ("sglang fastapi", 422, {"detail": [extra("top_logprobs")]}, ["top_logprobs"]),
    ("pydantic lines", 400, vllm(
        "1 validation error for ChatCompletionRequest\nseed\n  Extra inputs are not permitted "
        "[type=extra_forbidden, input_value=7, input_type=int]"), ["seed"]),
    ("tgi", 422, {"error": "Input validation error: `top_p` must be > 0.0 and < 1.0",
                  "error_type": "validation"}, ["top_p"]),
    ("tgi temperature", 422, {"error": "Input validation error: `temperature` must be strictly "
                                       "positive", "error_type": "validation"}, ["temperature"]),
    ("llama.cpp", 501, {"error": {"code": 501, "message": "This server does not support "
                                  "`response_format`.", "type": "not_supported_error"}},
        ["response_format"]),
    ("ollama thinking", 400, openai('"llama3.1:8b" does not support thinking', None, None),
        ["reasoning_effort"]),
    ("ollama value", 400, openai('think value "low" is not supported for this model', None, None,
                                 "api_error"), ["reasoning_effort"]),
    ("ollama word", 400, openai('invalid reasoning value: "low" (must be "high" or "none")', None,
                                None), ["reasoning_effort"]),
    # xAI, Groq, DeepSeek, Moonshot, MiniMax, LiteLLM, serde, OpenRouter
    ("xai", 400, {"code": "invalid-argument", "error": "Model grok-4.20-0309-reasoning does not "
                  "support parameter reasoningEffort."}, ["reasoning_effort"]),
    ("xai argument", 400, {"code": "Client specified an invalid argument", "error": "Argument not "
                           "supported on this model: presencePenalty"}, ["presence_penalty"]),
    ("groq", 400, {"error": {"message": "property 'logprobs' is unsupported, did you mean 'stop'?",
                             "type": "invalid_request_error"}}, ["logprobs"]),
    ("groq schema", 400, {"error": {"message": "'response_format.type' : value is not one of the "
                                    "allowed values ['text','json_object']"}}, ["response_format"]),
    ("groq keyword", 400, {"error": {"message": "invalid schema for response format: "
                                     "response_format/json_schema/x: minItems is not supported"}},
        ["response_format"]),
    ("deepseek", 400, openai("This response_format type is unavailable now", None,
                             "invalid_request_error"), ["response_format"]),
    ("grammar", 400, openai("Grammar error: Unimplemented keys", None, None), ["response_format"]),
    ("moonshot", 400, openai("invalid temperature: only 1 is allowed for this model", None, None),
        ["temperature"]),
    ("minimax detail", 400, {"error": {
        "type": "bad_request_error", "http_code": "400",
        "message": "invalid params, invalid image detail: auto (2013)"}}, ["detail"]),
    ("litellm", 400, openai(
        "litellm.UnsupportedParamsError: gpt-5 models don't support temperature=0.0. Only "
        "temperature=1 is supported. To drop unsupported params set `litellm.drop_params = True`",
        None, "400"), ["temperature"]),
    ("serde", 422, "Failed to deserialize the JSON body: unknown field `seed`, expected one of "
                   "`model`, `messages`, `temperature`, `top_p` at line 1", ["seed"]),
    ("openrouter nested", 400, {"error": {
        "message": "Provider returned error", "code": 400, "metadata": {
            "raw": json.dumps(openai(
                f"Unsupported parameter: 'top_p' is not supported {WITH_MODEL}.", "top_p",
                "unsupported_parameter")), "provider_name": "OpenAI"}}}, ["top_p"]),
    ("openrouter nameless", 404, {"error": {
        "message": "No endpoints found that can handle the requested parameters.", "code": 404}},
        ["seed"]),
    ("extra body", 400, openai("Unknown parameter: 'thinking_budget'.", "thinking_budget",
                               "unknown_parameter"), ["thinking_budget"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "refused"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_the_refused_parameter_is_read_from_the_words_of_each_family(status, body, refused):
    expected = refused if isinstance(refused, dict) else dict.fromkeys(refused, "")
    changes = refused_parameters(status, body, SENT)
    assert {change.parameter: change.instead for change in changes} == expected
    assert not set(adapt_request(SENT, expected)) & (set(expected) - {"detail"})


@pytest.mark.parametrize("form", ["param", "words"])
def test_each_name_of_the_limit_of_tokens_is_replaced_by_the_other(form):
    said = f"'max_tokens' is not supported {WITH_MODEL}. Use 'max_completion_tokens' instead."
    body = openai(f"Unsupported parameter: {said}", "max_tokens" if form == "param" else None, None)
    assert refused_parameters(400, body, OLD) == (Change("max_tokens", "max_completion_tokens"),)
    assert (
        adapt_request(OLD, {"max_tokens": "max_completion_tokens"})["max_completion_tokens"] == 512
    )
    both = {**SENT, "max_tokens": 5}
    said = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
    assert refused_parameters(400, openai(said, "max_tokens", None), both) == (
        Change("max_tokens"),
    )


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, openai("This model's maximum context length is 8192 tokens. However, you requested "
                     "9000 tokens (8000 in the messages, 1000 in the completion). Please reduce "
                     "the length of the messages or completion.", "messages",
                     "context_length_exceeded")),
        (400, vllm("'max_tokens' or 'max_completion_tokens' is too large: 512. This model's "
                   "maximum context length is 4096 tokens and your request has 4000 input tokens")),
        (400, openai("max_completion_tokens is too large: 99999. This model supports at most 16384 "
                     "completion tokens, whereas you provided 99999.", "max_completion_tokens",
                     "invalid_value")),
        (400, vllm("max_completion_tokens must be at least 1, got -100.")),
        (400, openai("Invalid image: the image format is not supported. Seeded by a stop.",
                     "messages[0].content[0].image_url", "invalid_image_format")),
        (400, openai("The response was filtered due to the prompt triggering the content "
                     "management policy. Please modify your prompt and retry.", "prompt",
                     "content_filter")),
        (404, {"error": {"message": "No endpoints found that support image input", "code": 404}}),
        (404, openai("The model `seed-7b` does not exist", None, "model_not_found")),
        (400, openai("Your request stops here: unsupported language.", None, None)),
        (401, openai("Unsupported parameter: 'seed'", "seed", "unsupported_parameter")),
        (500, openai("Unsupported parameter: 'seed'", "seed", "unsupported_parameter")),
        (400, extra("absent")), (400, None), (400, "seed"), (400, []), (400, {"error": None}),
        (413, "Payload too large"), (400, openai("At most 4 image(s) may be provided", None, None)),
    ],
)  # fmt: skip
def test_other_errors_refuse_no_parameter(status, body):
    assert refused_parameters(status, body, {**SENT, "max_completion_tokens": 512}) == ()


def test_a_parameter_that_was_not_sent_is_not_refused():
    body = openai("Unsupported parameter: 'seed'", "seed", "unsupported_parameter")
    sent = {name: value for name, value in SENT.items() if name != "seed"}
    assert refused_parameters(400, body, sent) == ()


def test_detail_is_left_out_of_every_image_and_nothing_else():
    kept = adapt_request(SENT, {"detail": ""})
    assert kept["messages"][0]["content"][0]["image_url"] == {"url": "data:image/jpeg;base64,AA"}
    assert kept["messages"][0]["content"][1] == SENT["messages"][0]["content"][1]
    assert IMAGE["image_url"] == {"url": "data:image/jpeg;base64,AA", "detail": "auto"}


def test_top_logprobs_go_with_logprobs():
    assert "top_logprobs" not in adapt_request(SENT, {"logprobs": ""})
    assert "logprobs" in adapt_request(SENT, {"top_logprobs": ""})


def test_values_are_told_apart_where_an_endpoint_may_refuse_one_of_them():
    cold, warm = values_sent({"temperature": 0.0, "seed": 1}), values_sent({"temperature": 1.0})
    assert cold == {"temperature=0.0", "seed"}
    assert warm == {"temperature=1.0"}
    assert "detail=auto" in values_sent(SENT)
