import { describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import { toClientError } from "./answer-turn.ts";

describe("toClientError()", () => {
  test("says of a tokenizer that failed, as of an engine, that it is to be tried again", () => {
    for (const code of ["internal/tokenizer", "engine/unreachable"] as const) {
      const error = new RolloutError(code, "Cannot use it: its process ended with SIGKILL");
      const told = toClientError(error);
      expect(told).toMatchObject({
        ...{ kind: "unavailable", status: 503, retryAfterS: 1, cause: error },
        message: "Cannot use it: its process ended with SIGKILL",
      });
    }
  });
});
