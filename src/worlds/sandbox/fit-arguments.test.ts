import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { fitArguments } from "./fit-arguments.ts";

/** Runs the result of `fitArguments()` for a command. */
function run(...command: readonly string[]) {
  const [program = "", ...args] = fitArguments(command);
  const { status, stdout, error } = spawnSync(program, args, { encoding: "utf8" });
  return { status, stdout, fault: error?.message };
}

describe("fitArguments()", () => {
  test("does not change a command that fits", () => {
    const command = ["sh", "-c", "x".repeat(131_071)];
    expect(fitArguments(command)).toBe(command);
  });

  test("passes a long script with its name and its arguments", () => {
    // Characters of four bytes; a piece must not end within one.
    const text = `a${"😀".repeat(70_000)}`;
    const script = `read -r line <<'END'\n${text}\nEND\nprintf '%s|' "$0" "$#" "$1" "$2"; printf %s "$line"; exit 7`;
    expect(run("sh", "-c", script, "name", "one two", "")).toEqual({
      status: 7,
      stdout: `name|2|one two||${text}`,
      fault: undefined,
    });
  });

  test("passes a long argument of a short script, also below other programs and options", () => {
    const text = "ü ".repeat(100_000);
    const script = `printf '%s|' "$0" "$#" "$1" "$2"`;
    const seen = { status: 0, stdout: `sh|2|${text}|end|`, fault: undefined };
    expect(run("env", "A=1", "sh", "-e", "-u", "-c", script, "sh", text, "end")).toEqual(seen);
    expect(run("/bin/sh", "-euc", script, "sh", text, "end")).toEqual(seen);
  });

  test("passes a script that ends in white space, or in the middle of a line", () => {
    const filling = `: '${"x".repeat(140_000)}'`;
    expect(run("sh", "-c", `${filling}\necho done \n\n`).stdout).toBe("done \n".replace(" ", ""));
    expect(run("sh", "-c", `echo "$0"; ${filling}`).stdout).toBe("sh\n");
  });

  test.each([
    ["of a program that is no shell", ["printf", "%s", "x".repeat(200_000)]],
    ["of a shell without a script", ["sh", "x".repeat(200_000)]],
    ["before the shell", ["env", `A=${"x".repeat(200_000)}`, "sh", "-c", "true"]],
  ])("leaves a long argument %s to the system, which refuses it", (_, command) => {
    expect(fitArguments(command)).toBe(command);
    if (process.platform === "linux") expect(run(...command).fault).toMatch(/E2BIG$/);
  });
});
