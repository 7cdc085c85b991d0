import { describe, expect, test } from "vitest";
import { RolloutError, UsageError } from "../errors.ts";
import { toClientError } from "./answer-turn.ts";

describe("toClientError()", () => {
  test("reports a failed tokenizer or engine as retryable", () => {
    for (const [code, who] of [
      ["internal/tokenizer", "tokenizer"],
      ["engine/unreachable", "engine"],
    ] as const) {
      const error = new RolloutError(code, "Cannot use it: its process ended with SIGKILL");
      const encoded = toClientError(error);
      expect(encoded).toMatchObject({
        kind: "unavailable",
        status: 503,
        retryAfterS: 1,
        cause: error,
        message: `The ${who} did not answer (${code}); the gateway's own output says why`,
      });
    }
  });

  test("contains no address, path or request", () => {
    const detail = "Cannot sample request 7~s0-1234567890ab:0; at http://10.0.0.5:30000: HTTP 400";
    expect(toClientError(new RolloutError("engine/prompt-too-long", detail)).message).toBe(
      "prompt is too long: prompt and output do not fit the engine's context",
    );
    expect(toClientError(new UsageError("Cannot write /runs/a/gateway.jsonl")).message).toBe(
      "The gateway failed; its own output says why",
    );
  });
});
