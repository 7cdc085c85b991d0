import { expect, test } from "vitest";
import type { Engine } from "./engine.ts";
import { passOn } from "./pass-on.ts";

test("a wrapped engine has all members of the engine, and calls its methods", async () => {
  const calls: unknown[] = [];
  const note =
    (name: string) =>
    async (...given: unknown[]): Promise<never> =>
      calls.push([name, ...given]) as never;
  const engine: Required<Engine> = {
    kind: "sglang",
    generate: note("generate"),
    complete: note("complete"),
    score: note("score"),
    scoreTop: note("scoreTop"),
    describe: note("describe"),
    load: note("load"),
    close: note("close"),
  };
  const { kind, close, ...methods } = passOn(engine) as Required<Engine>;
  expect(kind).toBe("sglang");
  await close();
  const names = Object.keys(methods) as (keyof typeof methods)[];
  for (const name of names) await (methods[name] as (...given: unknown[]) => unknown)("request");
  expect(names.toSorted()).toEqual(
    ["generate", "complete", "score", "scoreTop", "describe", "load"].toSorted(),
  );
  expect(calls.map((call) => (call as unknown[]).slice(0, 2))).toEqual([
    ["close"],
    ...names.map((name) => [name, "request"]),
  ]);
});

test("a wrapped engine lacks the methods that the engine lacks", () => {
  const answer = async (): Promise<never> => await Promise.reject(new Error("not called"));
  const engine: Engine = {
    kind: "sglang",
    generate: answer,
    describe: answer,
    close: answer,
  };
  expect(Object.keys(passOn(engine)).toSorted()).toEqual(Object.keys(engine).toSorted());
});
