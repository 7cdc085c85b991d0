import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { RolloutError } from "../../errors.ts";
import { RemoteTokenizer } from "./remote-tokenizer.ts";
import type { PortListener } from "./tokenizer-port.ts";
import type { NumberedRequest } from "./tokenizer-server.ts";

/** A remote tokenizer whose replies and crashes the test controls, one run after the other. */
class FakeElsewhere {
  readonly runs: { readonly listener: PortListener; readonly requests: NumberedRequest[] }[] = [];

  get run() {
    return this.runs.at(-1)!;
  }

  /** The texts of the requests that this run received and has not answered. */
  get texts(): readonly string[] {
    return this.run.requests.flatMap((one) => (one.type === "encode" ? [one.text] : []));
  }

  create(options: { readonly atOnce?: number; readonly deadlineMs?: number }): RemoteTokenizer {
    return new RemoteTokenizer({
      atOnce: 2,
      ...options,
      serve: () => {},
      library: "tokenizers",
      documents: { full: () => "{}", plain: () => "{}" },
      open: (_program, listener) => {
        const requests: NumberedRequest[] = [];
        this.runs.push({ listener, requests });
        return {
          post: (request) => {
            // Loading always succeeds in these tests.
            if (request.type === "load") listener.onReply({ id: request.id });
            else requests.push(request);
          },
          setBusy: () => {},
          end: async () => {},
        };
      },
    });
  }

  async answer(text: string): Promise<void> {
    const { requests, listener } = this.run;
    const at = requests.findIndex((one) => one.type === "encode" && one.text === text);
    const [request] = requests.splice(at, 1);
    listener.onReply({ id: request!.id, ids: Int32Array.of(text.length) });
    await settled();
  }

  async die(): Promise<void> {
    this.run.listener.onEnd(new Error("its process ended with SIGABRT"));
    await settled();
  }
}

/** Lets all tasks run that wait for no outside event. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

/** Returns the outcomes of promises so far, by index. */
function outcomesOf(promises: readonly Promise<unknown>[]): readonly unknown[] {
  const outcomes: unknown[] = promises.map(() => "waits");
  for (const [place, promise] of promises.entries()) {
    promise.then(
      (value) => (outcomes[place] = value),
      (error: unknown) => (outcomes[place] = error),
    );
  }
  return outcomes;
}

const died = new RolloutError(
  "internal/tokenizer",
  "Cannot use the tokenizer: its process ended with SIGABRT",
);

describe("RemoteTokenizer", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  test("sends as many texts as there are threads", async () => {
    const elsewhere = new FakeElsewhere();
    const tokenizer = elsewhere.create({});
    const outcomes = outcomesOf(["a", "bb", "ccc"].map((text) => tokenizer.encode("full", text)));
    await settled();
    expect(elsewhere.texts).toEqual(["a", "bb"]);
    await elsewhere.answer("bb");
    expect(elsewhere.texts).toEqual(["a", "ccc"]);
    await elsewhere.answer("ccc");
    await elsewhere.answer("a");
    expect(outcomes).toEqual([[1], [2], [3]]);
  });

  test("gives each text its complete time, regardless of the queue", async () => {
    const elsewhere = new FakeElsewhere();
    const tokenizer = elsewhere.create({ deadlineMs: 100 });
    const outcomes = outcomesOf(["a", "bb", "ccc"].map((text) => tokenizer.encode("full", text)));
    await settled();
    await vi.advanceTimersByTimeAsync(99);
    await elsewhere.answer("a");
    await elsewhere.answer("bb");
    await vi.advanceTimersByTimeAsync(99);
    await elsewhere.answer("ccc");
    expect(outcomes).toEqual([[1], [2], [3]]);
  });

  test("fails only the text that took too long, and repeats the texts next to it", async () => {
    const elsewhere = new FakeElsewhere();
    const tokenizer = elsewhere.create({ deadlineMs: 100 });
    const slow = tokenizer.encode("full", "slow");
    const outcomes = outcomesOf([slow]);
    await settled();
    await vi.advanceTimersByTimeAsync(50);
    const other = outcomesOf([tokenizer.encode("full", "a")]);
    await vi.advanceTimersByTimeAsync(50);
    await settled();
    expect(outcomes).toEqual([
      new RolloutError(
        "internal/tokenizer",
        "Cannot use the tokenizer: it gave no answer within 100 ms",
      ),
    ]);
    expect(elsewhere.runs).toHaveLength(2);
    await elsewhere.answer("a");
    expect(other).toEqual([[1]]);
  });

  test("fails only the text during which the tokenizer crashes alone", async () => {
    const elsewhere = new FakeElsewhere();
    const tokenizer = elsewhere.create({});
    const texts = ["a", "kills", "ccc", "dddd"];
    const outcomes = outcomesOf(texts.map((text) => tokenizer.encode("full", text)));
    await settled();
    await elsewhere.die();
    expect(outcomes).toEqual(["waits", "waits", "waits", "waits"]);
    // One by one, without new ones.
    expect(elsewhere.texts).toEqual(["kills"]);
    await elsewhere.die();
    expect(outcomes).toEqual(["waits", died, "waits", "waits"]);
    expect(elsewhere.texts).toEqual(["a"]);
    await elsewhere.answer("a");
    expect(elsewhere.texts).toEqual(["ccc", "dddd"]);
    await elsewhere.answer("ccc");
    await elsewhere.answer("dddd");
    expect(outcomes).toEqual([[1], died, [3], [4]]);
    expect(elsewhere.runs).toHaveLength(3);
  });

  test("rejects running and waiting requests when it is closed", async () => {
    const elsewhere = new FakeElsewhere();
    const tokenizer = elsewhere.create({});
    const outcomes = outcomesOf(["a", "bb", "ccc"].map((text) => tokenizer.encode("full", text)));
    await settled();
    await tokenizer.close();
    await settled();
    const closed = new RolloutError(
      "internal/tokenizer",
      "Cannot use the tokenizer: it was closed",
    );
    expect(outcomes).toEqual([closed, closed, closed]);
    expect(elsewhere.runs).toHaveLength(1);
  });
});
