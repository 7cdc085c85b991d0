import { expect, test } from "vitest";
import { refuseCommand } from "./refuse-command.ts";

const nul = "which only standard input and files can hold";

test.each<[string, string[], object, number, string]>([
  ["no program", [], {}, 127, "no program is named"],
  ["an empty name", ["", "x"], {}, 127, "no program is named"],
  [
    "a NUL character in a script",
    ["sh", "-c", "echo a\0b"],
    {},
    126,
    `argument 2 has a NUL character at position 6, ${nul}`,
  ],
  [
    "a NUL character in the folder",
    ["true"],
    { cwd: "a\0" },
    126,
    `the folder has a NUL character at position 1, ${nul}`,
  ],
  [
    "a NUL character in a variable",
    ["true"],
    { env: { A: "\0" } },
    126,
    `the variable "A" has a NUL character at position 0, ${nul}`,
  ],
  ["a bad variable's name", ["true"], { env: { "A=B": "" } }, 126, '"A=B" cannot name a variable'],
  [
    "half a character",
    ["echo", "😀\ud83d"],
    {},
    126,
    "argument 1 has half a character (U+D83D) at position 2, which UTF-8 cannot represent",
  ],
  [
    "half a character in its input",
    ["cat"],
    { stdin: "\udc00" },
    126,
    "the standard input has half a character (U+DC00) at position 0, which UTF-8 cannot represent",
  ],
  [
    "an argument that is missing",
    ["sh", "-c", undefined as unknown as string],
    {},
    126,
    "argument 2 is undefined, not text",
  ],
  ["a text", "ls -l" as unknown as string[], {}, 126, "it is string, not a list of texts"],
  ["nothing", undefined as unknown as string[], {}, 126, "it is undefined, not a list of texts"],
  ["variables that are null", ["env"], { env: null }, 126, "its variables are not an object"],
  ["variables that are a text", ["env"], { env: "A=1" }, 126, "its variables are not an object"],
  [
    "an input that is a number",
    ["cat"],
    { stdin: 5 },
    126,
    "the standard input is number, not text",
  ],
])("refuseCommand() answers %s", (_, command, options, exitCode, reason) => {
  const stderr = `cannot run the command: ${reason}`;
  const answer = { end: "exited", exitCode, stdout: "", stderr, omittedBytes: 0 };
  expect(refuseCommand(command, options)).toEqual(answer);
});

test("refuseCommand() accepts commands that a system can start", () => {
  const options = { cwd: "ü", env: { A: "😀\n" }, stdin: "a\0b" };
  expect(refuseCommand(["echo", "\ufeff", ""], options)).toBeUndefined();
});
