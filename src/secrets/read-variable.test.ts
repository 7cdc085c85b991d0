import { expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import { readVariable } from "./read-variable.ts";
import { Redactor } from "./redactor.ts";

test("readVariable() reads a variable, and names one that is unset", () => {
  const env = { TOKEN: "t", EMPTY: "" };
  expect(readVariable(env, "TOKEN", "--token-env")).toBe("t");
  expect(readVariable(env, undefined, "--token-env")).toBe(undefined);
  for (const name of ["EMPTY", "OTHER", "sk-pasted-key-0123456789", "AKIA0123456789ABCDEF"]) {
    expect(() => readVariable(env, name, "--token-env")).toThrow(
      new UsageError(
        "Cannot use --token-env: its value is not the name of a variable that is set, expected the " +
          "name of the variable that holds the secret, and not the secret itself",
      ),
    );
  }
});

test("readVariable() hides its value in all redactors", () => {
  readVariable({ TOKEN: "read-by-variable" }, "TOKEN", "--token-env");
  expect(new Redactor().text("It is read-by-variable.")).toBe("It is [redacted].");
});
