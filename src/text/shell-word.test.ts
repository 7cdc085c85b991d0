import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { shellWord } from "./shell-word.ts";

test("plain names stay as they are", () => {
  expect(shellWord("runs/demo-2026.01")).toBe("runs/demo-2026.01");
});

test.each(["", "odd name", "it's <b>$HOME</b>; `x` \\", "*?~!"])(
  "a shell reads %j back",
  (text) => {
    const read = execFileSync("sh", ["-c", `printf %s ${shellWord(text)}`], { encoding: "utf8" });
    expect(read).toBe(text);
  },
);
