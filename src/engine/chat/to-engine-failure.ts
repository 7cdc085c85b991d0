import { RolloutError, type FailureCode } from "../../errors.ts";
import { isPromptTooLongMessage } from "../http/http-failure.ts";
import type { ChatFailure } from "./chat-failure.ts";

/**
 * Words of hosted servers for a conversation that does not fit the context. The messages of inference servers are
 * recognised elsewhere (`isPromptTooLongMessage()`).
 */
const tooLong =
  /context_length_exceeded|exceed_context_size|context length|context window|prompt is too long|input is too long|token count .* exceeds the maximum/i;

const filtered = /"code":\s*"content_(?:filter|policy_violation)"/;

/**
 * Converts a failed call to a failure of the engine.
 *
 * @param what - The failed action, such as `get turn 3 from gpt-5`.
 */
export function toEngineFailure(failure: ChatFailure, what: string): RolloutError {
  const { code, expected } = explain(failure);
  return new RolloutError(code, `Cannot ${what}: ${failure.message}, expected ${expected}`, {
    cause: failure.cause,
    retryable: failure.retryable,
  });
}

function explain({ kind, message, cause }: ChatFailure): {
  readonly code: FailureCode;
  readonly expected: string;
} {
  const { responseBody = "", statusCode } = (cause ?? {}) as {
    readonly responseBody?: string;
    readonly statusCode?: number;
  };
  switch (kind) {
    case "bad-request": {
      const words = `${message} ${responseBody}`;
      if (statusCode === 404 || statusCode === 405) {
        return {
          code: "engine/not-found",
          expected:
            "the address of a server, such as http://127.0.0.1:8000/v1, and the name of one of its models",
        };
      }
      if (filtered.test(responseBody))
        return { code: "engine/content-filter", expected: unfiltered };
      if (isPromptTooLongMessage(words) || tooLong.test(words)) {
        return { code: "engine/prompt-too-long", expected: "prompt and output to fit the context" };
      }
      return { code: "engine/bad-request", expected: "a request that the server accepts" };
    }
    case "unauthorized":
      return { code: "engine/unauthorized", expected: "a valid key" };
    case "budget":
      return { code: "engine/budget", expected: "an account with quota left" };
    case "content-filter":
      return { code: "engine/content-filter", expected: unfiltered };
    case "unreachable":
      return { code: "engine/unreachable", expected: "a server at its URL" };
    default:
      return { code: `engine/${kind}`, expected: "a completion" };
  }
}

const unfiltered = "a conversation that its provider lets pass";
