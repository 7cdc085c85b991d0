import { expect, test } from "vitest";
import { checkEnvironment } from "../api/check/check-environment.ts";
import { defineEnvironment } from "./define-environment.ts";

const hang = async (): Promise<never> => await new Promise<never>(() => {});

/** The report of `env check` about an environment with one part that never answers. */
async function said(parts: {
  initialState?: () => Promise<object>;
  score?: () => Promise<number>;
  dispose?: () => Promise<void>;
}): Promise<readonly string[]> {
  const environment = defineEnvironment({
    name: "lamps",
    tasks: [{ instruction: "Light, please." }],
    initialState: () => ({}),
    policy: "You look after the lamps.",
    tools: [],
    score: () => 0,
    ...parts,
  });
  const { problems } = await checkEnvironment(environment, { timeoutMs: 5 });
  return problems.map(({ message }) => message.replace(/test\.ts:\d+/, "test.ts:LINE"));
}

test.each([
  ["initialState", "open task lamps/test/0"],
  ["score", "score"],
  ["dispose", "dispose of the world of task lamps/test/0"],
])("%s() that never answers is named, with the file that it is in", async (part, doing) => {
  expect(await said({ [part]: hang })).toContain(
    `task lamps/test/0: an agent that does nothing: Cannot ${doing}: no answer within 5 ms, ` +
      `expected one (a forgotten resolve in ${part}() of lamps (hanging-parts.test.ts:LINE)?)`,
  );
});
