import { expect, test } from "vitest";
import { readVariable } from "./read-variable.ts";

test("readVariable() reads what is asked for, and says what is not set", () => {
  const env = { TOKEN: "t", EMPTY: "" };
  expect(readVariable(env, "TOKEN", "--token-env")).toBe("t");
  expect(readVariable(env, undefined, "--token-env")).toBe(undefined);
  for (const name of ["EMPTY", "OTHER"]) {
    expect(() => readVariable(env, name, "--token-env")).toThrow(
      `Cannot read --token-env: the variable ${name} is not set`,
    );
  }
});
