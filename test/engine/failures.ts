import type { EngineScenario, ServerFault } from "../../src/testing/index.ts";

/** The reply of one kind of server to a call that fails in this way. */
export type ServerFailures = Readonly<
  Record<Extract<EngineScenario, { kind: "fails" }>["code"], ServerFault>
>;

/** SGLang's own words for each failure. */
export const sglangFailures: ServerFailures = {
  "engine/overloaded": {
    kind: "status",
    status: 503,
    body: { object: "error", message: "The request queue is full.", type: "503", code: 503 },
  },
  "engine/server-error": { kind: "status", status: 500, body: "Internal Server Error" },
  "engine/unauthorized": { kind: "status", status: 401, body: { error: "Unauthorized" } },
  "engine/prompt-too-long": {
    kind: "status",
    status: 400,
    body: {
      error: {
        message: "The input (9 tokens) is longer than the model's context length (8 tokens).",
      },
    },
  },
  "engine/bad-request": {
    kind: "status",
    status: 400,
    body: { error: { message: "temperature must be non-negative, got -1." } },
  },
};

/** An error as vLLM words it. */
export function vllmError(
  status: number,
  message: string,
  type: string,
  param: string | null = null,
) {
  return {
    kind: "status",
    status,
    body: { error: { message, type, param, code: status } },
  } as const;
}

/** vLLM's own words for each failure. */
export const vllmFailures: ServerFailures = {
  "engine/overloaded": {
    kind: "status",
    status: 503,
    body: { error: "The model is currently scaling. Please try again later." },
  },
  "engine/server-error": vllmError(500, "EngineCore", "InternalServerError"),
  "engine/unauthorized": { kind: "status", status: 401, body: { error: "Unauthorized" } },
  "engine/prompt-too-long": vllmError(
    400,
    "The decoder prompt (length 9) is longer than the maximum model length of 8. Make sure " +
      "that `max_model_len` is no smaller than the number of text tokens.",
    "BadRequestError",
  ),
  "engine/bad-request": vllmError(
    400,
    "temperature must be in [0, 2], got 9.",
    "BadRequestError",
    "temperature",
  ),
};

/** An error as llama.cpp words it. */
export function llamaCppError(code: number, type: string, message: string) {
  return { kind: "status", status: code, body: { error: { code, message, type } } } as const;
}

/** llama.cpp's own words for each failure. */
export const llamaCppFailures: ServerFailures = {
  "engine/overloaded": llamaCppError(503, "unavailable_error", "Loading model"),
  "engine/server-error": llamaCppError(500, "server_error", "got exception: decode failed"),
  "engine/unauthorized": llamaCppError(401, "authentication_error", "Invalid API Key"),
  "engine/prompt-too-long": llamaCppError(
    400,
    "exceed_context_size_error",
    "request (9 tokens) exceeds the available context size (8 tokens), try increasing it",
  ),
  "engine/bad-request": llamaCppError(
    400,
    "invalid_request_error",
    "Prompt contains invalid tokens",
  ),
};
