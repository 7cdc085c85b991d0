import { expect, test } from "vitest";
import type { RolloutError } from "../errors.ts";
import { beginTrace } from "./begin-trace.ts";
import type { EpisodeTrace, EpisodeTracer } from "./episode-tracer.ts";
import { lampTask } from "./lamp-episode.fixture.ts";

const assignment = {
  task: lampTask,
  rolloutId: "lamp/test/0#0",
  groupId: "lamp/test/0",
  sampleIndex: 0,
  seed: 0,
};

function fail(): never {
  throw new TypeError("the collector is away");
}

const nothing = (): void => {};
const late = (): Promise<never> => Promise.reject(new TypeError("the collector is away"));

test.each<[what: string, begin: (...call: never) => unknown]>([
  ["begin()", fail],
  ["begin(), later", late],
  ["call()", () => ({ call: fail, end: nothing })],
  ["what call() gives", () => ({ call: () => fail, end: nothing })],
  ["what call() gives, later", () => ({ call: () => late, end: nothing })],
  ["end()", () => ({ call: () => nothing, end: fail })],
  ["end(), later", () => ({ call: () => nothing, end: late })],
  ["all of them", () => ({ call: () => fail, end: fail })],
])(
  "a custom tracer that fails in %s has no effect, and its failure is reported once",
  async (_, begin) => {
    const troubles: RolloutError[] = [];
    const tracer = { begin } as EpisodeTracer;
    const onTrouble = (trouble: RolloutError): void => void troubles.push(trouble);
    const trace: EpisodeTrace | undefined = beginTrace(assignment, { tracer, onTrouble });
    trace?.call("begin")();
    trace?.call("step switch")(new Error("no"));
    trace?.end(undefined);
    // A rejection is reported one round later.
    await Promise.resolve();
    await Promise.resolve();
    const [trouble] = troubles;
    expect(troubles).toHaveLength(1);
    expect(trouble!.code).toBe("internal/tracer");
    expect(trouble!.message).toContain("Cannot trace lamp/test/0#0: ");
  },
);

test("a tracer gets calls and their ends in order", () => {
  const spans: unknown[] = [];
  const tracer: EpisodeTracer = {
    begin: ({ rolloutId }) => {
      spans.push(rolloutId);
      return {
        call:
          (name) =>
          (...thrown) =>
            void spans.push([name, ...thrown]),
        end: (episode) => void spans.push(episode),
      };
    },
  };
  const trace = beginTrace(assignment, { tracer });
  trace?.call("begin")();
  trace?.call("score")("no");
  trace?.end(undefined);
  expect(spans).toEqual(["lamp/test/0#0", ["begin"], ["score", "no"], undefined]);
  expect(beginTrace(assignment, { tracer: { begin: () => undefined } })).toBeUndefined();
  expect(beginTrace(assignment, {})).toBeUndefined();
});
