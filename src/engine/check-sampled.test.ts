import { expect, test } from "vitest";
import { checkGeneration } from "./check-sampled.ts";
import type { Generation } from "./engine.ts";

const request = {
  promptIds: [1, 2],
  sampling: {},
  maxNewTokens: 8,
  stopTokenIds: [9],
  requestId: "r",
  sessionId: "s",
};

test("an engine's later changes to its lists do not reach the returned turn", () => {
  const outputIds = [7, 9];
  const logprobs = [-0.5, -0.25];
  const piece = { requestId: "r", tokenCount: 2, policyVersion: "1", finish: "stop" as const };
  const pieces = [piece];
  const discarded = [{ requestId: "q", reason: "lost" }];
  const finish = { type: "stop", matched: 9 } as const;
  const sampled = { outputIds, logprobs, finish, pieces, discarded, queueMs: 3 };
  const kept = checkGeneration(sampled, request);
  const before = structuredClone(sampled);
  outputIds.splice(0, 2, 5, 5, 5);
  logprobs.length = 0;
  Object.assign(piece, { policyVersion: "2" });
  Object.assign(finish, { matched: 5 });
  pieces.push(piece);
  discarded.pop();
  expect(kept).toEqual(before);
});

test("fields that do not belong to a generation are not copied", () => {
  const sampled = {
    outputIds: [7],
    logprobs: [-0.5],
    finish: { type: "length" },
    pieces: [{ requestId: "r", tokenCount: 1, policyVersion: "1", finish: "length" }],
    discarded: [],
  } as const satisfies Generation;
  const more: Generation = Object.assign({ ids: [1, 2, 3, 4] }, sampled);
  expect(checkGeneration(more, request)).toEqual(sampled);
});

test("getters of a class are refused if their values cannot be written as JSON", () => {
  class Reply {
    readonly outputIds = [7];
    readonly logprobs = [-0.5];
    readonly finish = { type: "length" };
    readonly discarded = [];
    get pieces(): readonly unknown[] {
      const piece = { requestId: "r", tokenCount: 1, policyVersion: "1", finish: "length" };
      return [{ ...piece, tookNs: 5n }];
    }
  }
  expect(() => checkGeneration(new Reply() as never, request)).toThrow(
    "pieces cannot be written as JSON",
  );
});

test("getters of a class are copied", () => {
  class Piece {
    readonly #tokenCount = 2;
    readonly policyVersion = "1";
    get requestId(): string {
      return "r";
    }
    get tokenCount(): number {
      return this.#tokenCount;
    }
    get finish(): "stop" {
      return "stop";
    }
  }
  class Lost {
    get requestId(): string {
      return "q";
    }
    get reason(): string {
      return "lost";
    }
    get tokenCount(): number {
      return 3;
    }
  }
  class Stopped {
    readonly #type: "length" | "stop";
    readonly #matched: unknown;
    constructor(type: "length" | "stop", matched: unknown) {
      this.#type = type;
      this.#matched = matched;
    }
    get type(): "length" | "stop" {
      return this.#type;
    }
    get matched(): unknown {
      return this.#matched;
    }
  }
  const ending = (type: "length" | "stop", matched: unknown): Generation => ({
    outputIds: [7, 9],
    logprobs: [-0.5, -0.25],
    finish: new Stopped(type, matched) as never,
    pieces: [new Piece()],
    discarded: [new Lost()],
  });
  const discarded = [{ requestId: "q", reason: "lost", tokenCount: 3 }];
  const kept = checkGeneration(ending("stop", 9), request);
  expect(kept).toStrictEqual({
    outputIds: [7, 9],
    logprobs: [-0.5, -0.25],
    finish: { type: "stop", matched: 9 },
    pieces: [{ policyVersion: "1", requestId: "r", tokenCount: 2, finish: "stop" }],
    discarded,
  });
  // Fields that are not copied may contain values that JSON cannot express.
  expect(checkGeneration(ending("length", 9n), request).finish).toStrictEqual({ type: "length" });
  expect(() => checkGeneration({ ...ending("stop", 9), queueMs: Number.NaN }, request)).toThrow(
    expect.objectContaining({
      code: "engine/bad-reply",
      discarded: [...discarded, expect.objectContaining({ requestId: "r", tokenCount: 2 })],
    }),
  );
});
