import { describe, expect, test } from "vitest";
import type {
  GenerateOptions,
  GenerateRequest,
  Generation,
  GenerationPiece,
} from "../../engine/engine.ts";
import { emptyGeneration } from "../../engine/empty-generation.ts";
import { preparedEngine } from "../../episode/lamp-episode.fixture.ts";
import { RolloutError } from "../../errors.ts";
import { createClock } from "../../async/clock.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { PolicyGate } from "./policy-gate.ts";

const request = {
  promptIds: [1],
  sampling: {},
  maxNewTokens: 1,
  stopTokenIds: [2],
  requestId: "r",
  sessionId: "s",
};

describe("PolicyGate", () => {
  test.each(["hold", "interrupt"] as const)(
    "does not wait (%s) for a call that its caller cancelled and the engine never ends",
    async (mode) => {
      const gate = new PolicyGate({
        ...preparedEngine([]),
        generate: () => new Promise<never>(() => {}),
      });
      const caller = new AbortController();
      void gate.engine.generate(request, { signal: caller.signal });
      const closed = gate.close(mode);
      expect(gate.runningCount).toBe(1);
      caller.abort();
      await closed;
      expect(gate.runningCount).toBe(0);
    },
  );

  test("keeps the tokens from before an update if the engine has no room after them", async () => {
    const piece = { requestId: "r", tokenCount: 2, policyVersion: "1", finish: "abort" } as const;
    const part: Generation = {
      outputIds: [7, 8],
      logprobs: [-1, -1],
      pieces: [piece],
      discarded: [],
      finish: { type: "length" },
    };
    const tooLong = new RolloutError("engine/prompt-too-long", "no room");
    const asked: number[][] = [];
    const gate = new PolicyGate({
      ...preparedEngine([]),
      async generate({ promptIds }, options) {
        asked.push([...promptIds]);
        if (asked.length > 1) throw tooLong;
        await new Promise<void>((resolve) => {
          options?.cutShort?.addEventListener("abort", () => resolve());
        });
        return part;
      },
    });
    const generating = gate.engine.generate({ ...request, maxNewTokens: 9 });
    await gate.close("interrupt");
    gate.open();
    expect(await generating).toEqual(part);
    expect(asked).toEqual([[1], [1, 7, 8]]);
    await expect(gate.engine.generate(request)).rejects.toBe(tooLong);
  });

  test("keeps the tokens from before an update if the engine reuses its lists", async () => {
    const [outputIds, logprobs, pieces]: [number[], number[], GenerationPiece[]] = [[], [], []];
    const prompts: number[][] = [];
    const gate = new PolicyGate({
      ...preparedEngine([]),
      async generate({ promptIds, requestId }, options) {
        prompts.push([...promptIds]);
        const isFirst = prompts.length === 1;
        if (isFirst) await untilCut(options);
        const ids = isFirst ? [11, 12] : [13, 14, 2];
        for (const list of [outputIds, logprobs, pieces]) list.length = 0;
        outputIds.push(...ids);
        logprobs.push(...ids.map((id) => -id / 100));
        pieces.push({
          requestId,
          tokenCount: ids.length,
          policyVersion: isFirst ? "1" : "2",
          finish: isFirst ? "abort" : "stop",
        });
        const finish = isFirst ? ("length" as const) : ("stop" as const);
        return { outputIds, logprobs, pieces, finish: { type: finish }, discarded: [] };
      },
    });
    const generating = gate.engine.generate({ ...request, maxNewTokens: 9 });
    await gate.close("interrupt");
    gate.open();
    expect(await generating).toEqual({
      outputIds: [11, 12, 13, 14, 2],
      logprobs: [-0.11, -0.12, -0.13, -0.14, -0.02],
      finish: { type: "stop" },
      pieces: [
        { requestId: "r", tokenCount: 2, policyVersion: "1", finish: "abort" },
        { requestId: "rw1;", tokenCount: 3, policyVersion: "2", finish: "stop" },
      ],
      discarded: [],
    });
    expect(prompts).toEqual([[1], [1, 11, 12]]);
  });

  test("continues no call after an answer that is not a generation", async () => {
    const asked: number[][] = [];
    const gate = new PolicyGate({
      ...preparedEngine([]),
      async generate({ promptIds }, options) {
        asked.push([...promptIds]);
        await untilCut(options);
        const piece = { requestId: "r", tokenCount: 1, policyVersion: "1" };
        const pieces = [{ ...piece, finish: "abort" as const }];
        const finish = { type: "length" } as const;
        return { outputIds: [-7], logprobs: [-1], pieces, finish, discarded: [] };
      },
    });
    const generating = gate.engine.generate({ ...request, maxNewTokens: 9 });
    await gate.close("interrupt");
    gate.open();
    await expect(generating).rejects.toMatchObject({ code: "engine/bad-reply" });
    expect(asked).toEqual([[1]]);
  });

  test("returns the sampled tokens to a call that is cut short while the gate is closed, without asking the engine", async () => {
    const piece = { requestId: "r", tokenCount: 2, policyVersion: "1", finish: "abort" } as const;
    const part: Generation = {
      outputIds: [7, 8],
      logprobs: [-1, -1],
      pieces: [piece],
      discarded: [],
      finish: { type: "length" },
    };
    let askedCount = 0;
    const gate = new PolicyGate({
      ...preparedEngine([]),
      async generate(_, options) {
        askedCount += 1;
        await untilCut(options);
        return part;
      },
    });
    const cut = new AbortController();
    const held: boolean[] = [];
    const options = {
      cutShort: cut.signal,
      onHeld: (isHeld: boolean) => void held.push(isHeld),
    };
    const begun = gate.engine.generate({ ...request, maxNewTokens: 9 }, options);
    await gate.close("interrupt");
    const late = gate.engine.generate({ ...request, maxNewTokens: 9 }, options);
    await new Promise((resolve) => setImmediate(resolve));
    expect(held).toEqual([true, true]);
    cut.abort();
    const nothing = { outputIds: [], logprobs: [], pieces: [], discarded: [] };
    expect(await late).toEqual({ ...nothing, finish: { type: "length" } });
    expect(await begun).toEqual(part);
    // Nor does a later call.
    expect(await gate.engine.generate(request, options)).toEqual({
      ...nothing,
      finish: { type: "length" },
    });
    expect(held).toEqual([true, true, false, false]);
    expect(askedCount).toBe(1);
  });

  /** A gate for an engine that streams these ids in order, the first when it is interrupted. */
  function gateBefore(parts: readonly (readonly number[])[]) {
    const asked: GenerateRequest[] = [];
    const gate = new PolicyGate({
      ...preparedEngine([]),
      async generate(request, options) {
        const outputIds = parts[asked.length]!;
        asked.push(request);
        if (asked.length === 1) await untilCut(options);
        return {
          outputIds,
          logprobs: outputIds.map(() => -1),
          discarded: [],
          pieces: [
            {
              requestId: request.requestId,
              tokenCount: outputIds.length,
              policyVersion: "1",
              finish: "abort",
            },
          ],
          finish: { type: "length" },
        };
      },
    });
    return { asked, gate };
  }

  test("samples with another seed after an update", async () => {
    const { asked, gate } = gateBefore([[7, 8], [9]]);
    const sampling = { temperature: 1, seed: 5 };
    const generating = gate.engine.generate({ ...request, sampling, maxNewTokens: 3 });
    await gate.close("interrupt");
    gate.open();
    expect(await generating).toMatchObject({ outputIds: [7, 8, 9], finish: { type: "length" } });
    expect(asked.map((one) => [one.promptIds, one.sampling])).toEqual([
      [[1], sampling],
      [[1, 7, 8], { temperature: 1, seed: (5 + 2 * 1_327_217_885) % 2 ** 31 }],
    ]);
  });

  describe("before a turn with a constraint over all of it", () => {
    const form = { constraint: { type: "regex", pattern: "abc" } } as const;
    const held: GenerateRequest = { ...request, ...form, maxNewTokens: 3 };
    const reason = "it was interrupted, and constraint (regex) applies to the complete turn";

    test("discards the tokens from before an update, and samples again", async () => {
      const { asked, gate } = gateBefore([
        [7, 8],
        [7, 9, 2],
      ]);
      const sampling = { temperature: 1, seed: 5 };
      const generating = gate.engine.generate({ ...held, sampling });
      await gate.close("interrupt");
      gate.open();
      expect(await generating).toEqual({
        outputIds: [7, 9, 2],
        logprobs: [-1, -1, -1],
        finish: { type: "length" },
        pieces: [{ requestId: "rw1;", tokenCount: 3, policyVersion: "1", finish: "abort" }],
        discarded: [{ requestId: "r", reason, tokenCount: 2 }],
      });
      expect(asked).toEqual([
        { ...held, sampling },
        { ...held, sampling, requestId: "rw1;" },
      ]);
    });

    test("keeps a turn that ended when it was interrupted", async () => {
      const { asked, gate } = gateBefore([[7, 2]]);
      const generating = gate.engine.generate(held);
      await gate.close("interrupt");
      gate.open();
      expect(await generating).toMatchObject({ outputIds: [7, 2], finish: { type: "stop" } });
      expect(asked).toHaveLength(1);
    });

    test("returns the sampled tokens to a call that is cut short until the gate is open", async () => {
      const { asked, gate } = gateBefore([[7, 8]]);
      const cut = new AbortController();
      const generating = gate.engine.generate(held, { cutShort: cut.signal });
      await gate.close("interrupt");
      cut.abort();
      expect(await generating).toMatchObject({ outputIds: [7, 8], discarded: [] });
      expect(asked).toHaveLength(1);
    });

    test("fails if its tokens were already streamed", async () => {
      const { asked, gate, hand } = gateBeforeTelling();
      const streamed: number[] = [];
      const onTokens: GenerateOptions["onTokens"] = ({ tokenIds }) =>
        void streamed.push(...tokenIds);
      const generating = gate.engine.generate(held, { onTokens });
      asked[0]!.options.onTokens!({ tokenIds: [11], logprobs: [-1] });
      const failed = expect(generating).rejects.toMatchObject({
        code: "engine/interrupted",
        retryable: true,
        message:
          "Cannot continue request r: it was interrupted (the policy's weights were changed) after tokens " +
          "were streamed, and constraint (regex) applies to the complete turn, expected the turn to be requested again",
        discarded: [
          { requestId: "r", reason, tokenCount: 1 },
          { requestId: "r", reason: "the engine had no more to show when it was cut short" },
        ],
      });
      const closed = gate.close("interrupt");
      await hand.advance(200);
      await closed;
      gate.open();
      await failed;
      expect([asked.length, streamed]).toEqual([1, [11]]);
    });

    /** A gate in front of an engine that has ids when it is cut short first, and then answers by `then`. */
    function gateBeforeCut(then: (options: GenerateOptions) => Promise<Generation>) {
      const piece = { requestId: "r", tokenCount: 2, policyVersion: "1", finish: "abort" } as const;
      const asked: GenerateRequest[] = [];
      const again = withResolvers();
      const hand = createManualClock();
      const gate = new PolicyGate(
        {
          ...preparedEngine([]),
          async generate(one, options = {}) {
            asked.push(one);
            if (asked.length > 1) {
              again.resolve();
              return await then(options);
            }
            await untilCut(options);
            const part = { outputIds: [7, 8], logprobs: [-1, -2], pieces: [piece] };
            const discarded = [{ requestId: "q", reason: "NaN happened", tokenCount: 1 }];
            return { ...part, finish: { type: "length" }, discarded };
          },
        },
        { graceMs: 200, clock: createClock(hand) },
      );
      const cut = new AbortController();
      const generating = gate.engine.generate(held, { cutShort: cut.signal });
      return { again: again.promise, asked, cut, gate, generating, hand, piece };
    }

    test.each<[what: string, then: (options: GenerateOptions) => Promise<Generation>]>([
      [
        "has nothing to show",
        async (options) => {
          await untilCut(options);
          return emptyGeneration();
        },
      ],
      ["never answers", () => new Promise(() => {})],
      [
        "ends the call by that",
        async (options) => {
          await untilCut(options);
          throw options.cutShort!.reason;
        },
      ],
    ])(
      "returns the sampled tokens to a call that is cut short if the engine, asked again, %s",
      async (_, then) => {
        const { again, asked, cut, gate, generating, hand, piece } = gateBeforeCut(then);
        await gate.close("interrupt");
        gate.open();
        await again;
        cut.abort();
        await hand.advance(100);
        expect(await generating).toMatchObject({
          outputIds: [7, 8],
          logprobs: [-1, -2],
          finish: { type: "length" },
          pieces: [piece],
        });
        expect(asked.map(({ promptIds, requestId }) => [requestId, promptIds])).toEqual([
          ["r", [1]],
          ["rw1;", [1]],
        ]);
      },
    );

    test("keeps the tokens through an update that precedes the first new id", async () => {
      const { again, cut, gate, generating } = gateBeforeCut(async (options) => {
        await untilCut(options);
        return emptyGeneration();
      });
      await gate.close("interrupt");
      gate.open();
      await again;
      await gate.close("interrupt");
      cut.abort();
      expect(await generating).toMatchObject({
        outputIds: [7, 8],
        discarded: [{ requestId: "q", reason: "NaN happened", tokenCount: 1 }],
      });
    });

    test("fails with a report of the sampled tokens if the engine, asked again, fails", async () => {
      const cause = new Error("ECONNRESET");
      const lost = [{ requestId: "rw1;", reason: "the reply broke off" }];
      const more = { cause, retryable: true, discarded: lost };
      const broken = new RolloutError("engine/unreachable", "gone", more);
      const { gate, generating } = gateBeforeCut(() => Promise.reject(broken));
      const failed = expect(generating).rejects.toMatchObject({
        code: "engine/unreachable",
        message: "gone",
        retryable: true,
        cause,
        stack: broken.stack,
        discarded: [
          { requestId: "r", reason: "the turn failed later", tokenCount: 2 },
          { requestId: "q", reason: "NaN happened", tokenCount: 1 },
          ...lost,
        ],
      });
      await gate.close("interrupt");
      gate.open();
      await failed;
    });

    test("counts a caller without streamed tokens as not notified", async () => {
      const { asked, gate, hand } = gateBeforeTelling();
      const streamed: number[] = [];
      const onTokens: GenerateOptions["onTokens"] = ({ tokenIds }) =>
        void streamed.push(...tokenIds);
      const generating = gate.engine.generate(held, { onTokens });
      asked[0]!.options.onTokens!({ tokenIds: [], logprobs: [] });
      const closed = gate.close("interrupt");
      await hand.advance(200);
      await closed;
      gate.open();
      expect(await generating).toMatchObject({ outputIds: [21, 2] });
      expect(streamed).toEqual([21, 2]);
    });

    test("samples again if no token was streamed, with or without a listener", async () => {
      const { gate } = gateBefore([
        [7, 8],
        [7, 9, 2],
      ]);
      const generating = gate.engine.generate(held, { onTokens: () => {} });
      await gate.close("interrupt");
      gate.open();
      expect(await generating).toMatchObject({ outputIds: [7, 9, 2] });
    });
  });

  test("does not wait for an engine that hangs, and samples again with the new weights", async () => {
    const hand = createManualClock();
    const asked: { readonly request: GenerateRequest; readonly signal: AbortSignal | undefined }[] =
      [];
    const good = preparedEngine([{ outputIds: [7, 2] }]);
    const gate = new PolicyGate(
      {
        ...good,
        async generate(one, options) {
          asked.push({ request: one, signal: options?.signal });
          return asked.length === 1
            ? await new Promise(() => {})
            : await good.generate(one, options);
        },
      },
      { graceMs: 200, clock: createClock(hand) },
    );
    const generating = gate.engine.generate({ ...request, maxNewTokens: 2 });
    await hand.advance(5000);
    let isClosed = false;
    const closed = gate.close("interrupt").then(() => (isClosed = true));
    await hand.advance(199);
    expect([isClosed, asked[0]!.signal?.aborted]).toEqual([false, false]);
    await hand.advance(1);
    await closed;
    expect([asked.length, asked[0]!.signal?.aborted]).toEqual([1, true]);
    gate.open();
    expect(await generating).toMatchObject({
      outputIds: [7, 2],
      discarded: [
        {
          requestId: "r",
          reason: "the engine had nothing to show when it was cut short",
        },
      ],
    });
    expect(asked.map((one) => [one.request.requestId, one.request.promptIds])).toEqual([
      ["r", [1]],
      ["rw1;", [1]],
    ]);
    expect(asked[1]!.request.maxNewTokens).toBe(2);
  });

  /** A gate in front of an engine with a first call that streams on demand and ignores its signals. */
  function gateBeforeTelling() {
    const hand = createManualClock();
    const asked: { readonly request: GenerateRequest; readonly options: GenerateOptions }[] = [];
    const good = preparedEngine([{ outputIds: [21, 2] }]);
    const gate = new PolicyGate(
      {
        ...good,
        async generate(one, options = {}) {
          asked.push({ request: one, options });
          if (asked.length === 1) return await new Promise(() => {});
          options.onTokens?.({ tokenIds: [21, 2], logprobs: [-0, -0.25] });
          return await good.generate(one, options);
        },
      },
      { graceMs: 200, announcedVersion: () => 4, clock: createClock(hand) },
    );
    return { asked, gate, hand };
  }

  test("continues from streamed tokens if an engine returns nothing", async () => {
    const { asked, gate, hand } = gateBeforeTelling();
    const streamed: number[] = [];
    const generating = gate.engine.generate(
      { ...request, maxNewTokens: 9 },
      { onTokens: ({ tokenIds }) => void streamed.push(...tokenIds) },
    );
    const { onTokens } = asked[0]!.options;
    // The engine may use its lists again.
    const [tokenIds, logprobs] = [
      [11, 12],
      [-1, -2],
    ] as [number[], number[]];
    onTokens!({ tokenIds, logprobs });
    tokenIds.length = logprobs.length = 0;
    onTokens!({ tokenIds: [13], logprobs: [-3] });
    const closed = gate.close("interrupt");
    await hand.advance(200);
    await closed;
    gate.open();
    expect(await generating).toMatchObject({
      outputIds: [11, 12, 13, 21, 2],
      logprobs: [-1, -2, -3, -0, -0.25],
      pieces: [
        { requestId: "r", tokenCount: 3, policyVersion: "4", finish: "abort" },
        { tokenCount: 2, policyVersion: "1" },
      ],
      discarded: [
        { requestId: "r", reason: "the engine had no more to show when it was cut short" },
      ],
    });
    expect(streamed).toEqual([11, 12, 13, 21, 2]);
    expect(asked[1]!.request).toMatchObject({
      requestId: "rw1;",
      promptIds: [1, 11, 12, 13],
      maxNewTokens: 6,
    });
  });

  test("samples nothing after a stop id that was streamed but not returned", async () => {
    const { asked, gate, hand } = gateBeforeTelling();
    const generating = gate.engine.generate(
      { ...request, maxNewTokens: 9 },
      { onTokens: () => {} },
    );
    asked[0]!.options.onTokens!({ tokenIds: [11, 2], logprobs: [-1, -2] });
    const closed = gate.close("interrupt");
    await hand.advance(200);
    await closed;
    gate.open();
    expect(await generating).toMatchObject({ outputIds: [11, 2], finish: { type: "stop" } });
    expect(asked).toHaveLength(1);
  });

  test("ignores events of an abandoned call, and is not held up by it", async () => {
    const { asked, gate, hand } = gateBeforeTelling();
    const streamed: number[] = [];
    const held: boolean[] = [];
    const generating = gate.engine.generate(
      { ...request, maxNewTokens: 9 },
      {
        onTokens: ({ tokenIds }) => void streamed.push(...tokenIds),
        onHeld: (isHeld) => void held.push(isHeld),
      },
    );
    const { onTokens, onHeld } = asked[0]!.options;
    onHeld!(true);
    const closed = gate.close("interrupt");
    await hand.advance(200);
    await closed;
    expect(held.slice(0, 2)).toEqual([true, false]);
    onTokens!({ tokenIds: [11], logprobs: [-1] });
    onHeld!(true);
    gate.open();
    expect(await generating).toMatchObject({ outputIds: [21, 2] });
    onTokens!({ tokenIds: [12], logprobs: [-1] });
    expect(streamed).toEqual([21, 2]);
    // The gate's own, while it was closed.
    expect(held.slice(2)).toEqual([true, false]);
  });

  test("reports an unreachable server to a caller that interrupts the turn, and not for its own interruptions", async () => {
    const { asked, gate, hand } = gateBeforeTelling();
    const cut = new AbortController();
    let notCutCount = 0;
    let givenUpCount = 0;
    const onNotCutShort = (): void => void (notCutCount += 1);
    const onAbandoned = (): void => void (givenUpCount += 1);
    const options = { cutShort: cut.signal, onNotCutShort, onAbandoned };
    const generating = gate.engine.generate({ ...request, maxNewTokens: 9 }, options);
    const closed = gate.close("interrupt");
    asked[0]!.options.onNotCutShort!();
    expect(notCutCount).toBe(0);
    // The engine saw the one cut, and does not see the other.
    cut.abort();
    expect(notCutCount).toBe(1);
    await hand.advance(199);
    expect(givenUpCount).toBe(0);
    await hand.advance(1);
    await closed;
    expect(givenUpCount).toBe(1);
    asked[0]!.options.onNotCutShort!();
    expect(notCutCount).toBe(1);
    expect(await generating).toMatchObject({ outputIds: [], finish: { type: "length" } });
  });

  test("reports an unreachable server when the caller interrupts the turn", async () => {
    const { asked, gate } = gateBeforeTelling();
    const cut = new AbortController();
    let notCutCount = 0;
    const onNotCutShort = (): void => void (notCutCount += 1);
    void gate.engine.generate(request, { cutShort: cut.signal, onNotCutShort });
    cut.abort();
    expect(notCutCount).toBe(0);
    asked[0]!.options.onNotCutShort!();
    expect(notCutCount).toBe(1);
  });

  /** Gates in front of an engine that streams some tokens, and then ends its first call by `endBy` when it is cut. */
  function gateBeforeRejecting(endBy: (cutShort: AbortSignal) => unknown) {
    const asked: GenerateRequest[] = [];
    const good = preparedEngine([{ outputIds: [21, 2] }]);
    const gate = new PolicyGate(
      {
        ...good,
        async generate(one, options = {}) {
          asked.push(one);
          if (asked.length > 1) return await good.generate(one, options);
          options.onTokens?.({ tokenIds: [11], logprobs: [-1] });
          await untilCut(options);
          throw endBy(options.cutShort!);
        },
      },
      { announcedVersion: () => 4 },
    );
    return { asked, gate };
  }

  const endings: readonly [what: string, endBy: (cutShort: AbortSignal) => unknown][] = [
    ["its reason", (cutShort) => cutShort.reason],
    [
      "an AbortError of its own",
      () => new DOMException("This operation was aborted", "AbortError"),
    ],
  ];

  test.each(endings)("asks again an engine that ends a cut call by %s", async (_, endBy) => {
    const { asked, gate } = gateBeforeRejecting(endBy);
    const generating = gate.engine.generate({ ...request, maxNewTokens: 9 });
    await gate.close("interrupt");
    gate.open();
    expect(await generating).toMatchObject({
      outputIds: [21, 2],
      discarded: [
        { requestId: "r", reason: "the engine had nothing to show when it was cut short" },
      ],
    });
    expect(asked.map(({ requestId }) => requestId)).toEqual(["r", "rw1;"]);
  });

  test.each(endings)(
    "keeps the streamed tokens of an engine that ends a cut call by %s",
    async (_, endBy) => {
      const { asked, gate } = gateBeforeRejecting(endBy);
      const cut = new AbortController();
      const options = { cutShort: cut.signal, onTokens: () => {} };
      const generating = gate.engine.generate({ ...request, maxNewTokens: 9 }, options);
      cut.abort(new DOMException("the time is over", "TimeoutError"));
      expect(await generating).toMatchObject({
        outputIds: [11],
        logprobs: [-1],
        finish: { type: "length" },
        pieces: [{ requestId: "r", tokenCount: 1, policyVersion: "4", finish: "abort" }],
      });
      expect(asked).toHaveLength(1);
    },
  );

  test("takes no other failure of a call that was cut for the end of it", async () => {
    const refused = new RolloutError("engine/unreachable", "gone");
    const { gate } = gateBeforeRejecting(() => refused);
    const generating = gate.engine.generate({ ...request, maxNewTokens: 9 });
    const failed = expect(generating).rejects.toBe(refused);
    await gate.close("interrupt");
    await failed;
    // Nor one that came before anybody cut it.
    const early = new DOMException("This operation was aborted", "AbortError");
    const before = new PolicyGate({
      ...preparedEngine([]),
      generate: () => Promise.reject(early),
    });
    await expect(before.engine.generate(request)).rejects.toBe(early);
  });

  test("throws the reason of the caller's own signal, regardless of the interrupted call", async () => {
    const caller = new AbortController();
    const cut = new AbortController();
    const gate = new PolicyGate({
      ...preparedEngine([]),
      async generate(_, options) {
        await untilCut(options);
        return await new Promise((__, reject) => {
          options!.signal!.addEventListener("abort", () =>
            reject(options!.signal!.reason as Error),
          );
        });
      },
    });
    const generating = gate.engine.generate(request, {
      signal: caller.signal,
      cutShort: cut.signal,
    });
    const left = new DOMException("the run was left", "AbortError");
    const failed = expect(generating).rejects.toBe(left);
    cut.abort();
    await new Promise((resolve) => setImmediate(resolve));
    caller.abort(left);
    await failed;
  });

  test("samples nothing after a stop id that an update interrupted", async () => {
    const { asked, gate } = gateBefore([[7, 2], [9]]);
    const generating = gate.engine.generate({ ...request, maxNewTokens: 9 });
    await gate.close("interrupt");
    gate.open();
    expect(await generating).toEqual({
      outputIds: [7, 2],
      logprobs: [-1, -1],
      discarded: [],
      finish: { type: "stop", matched: 2 },
      pieces: [{ requestId: "r", tokenCount: 2, policyVersion: "1", finish: "stop" }],
    });
    expect(asked).toHaveLength(1);
  });
});

async function untilCut(options: GenerateOptions | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    options?.cutShort?.addEventListener("abort", () => resolve(), { once: true });
  });
}
