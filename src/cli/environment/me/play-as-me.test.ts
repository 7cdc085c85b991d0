import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { oneToolEnvironment } from "../../../environment/one-tool-environment.fixture.ts";
import { UsageError } from "../../../errors.ts";
import { plainStyle } from "../../../report/text-style.ts";
import { createScriptedUser } from "../../../user/scripted-user.ts";
import { completionsOf, openAgentTerminal } from "./agent-terminal.ts";
import { readMyChoices } from "./my-settings.ts";
import { playAsMe } from "./play-as-me.ts";

function lamp({ breaks = false } = {}) {
  return oneToolEnvironment({
    name: "lamp",
    tool: { name: "switch", parameters: { type: "object", properties: {} } },
    policyText: "You switch the lamp.",
    instruction: "Turn the lamp on.",
    open() {
      let isOn = false;
      return {
        call() {
          if (breaks) throw new Error("the fuse is blown");
          isOn = true;
          return "on\u001B[2J";
        },
        score: (isDone) => ({ reward: isOn && isDone ? 1 : 0, details: { isOn } }),
      };
    },
  });
}

/** Plays with the lines of a pipe, and returns everything that is printed. */
async function play(lines: readonly string[], environment = lamp()): Promise<string> {
  const input = new PassThrough();
  input.end(lines.map((line) => `${line}\n`).join(""));
  let printed = "";
  const output = new PassThrough();
  output.on("data", (piece: Buffer) => (printed += piece.toString("utf8")));
  await playAsMe({
    environment,
    task: environment.task("test", 0),
    user: createScriptedUser({
      lines: ["Lamp on, please.", "Is it on?", { text: "Bye.", leaves: true }],
    }),
    seed: 0,
    style: plainStyle,
    openTerminal: (words) => openAgentTerminal(words, { input, output }),
    print: (text) => void output.write(text),
  });
  return printed;
}

test("shows the task, performs what the person writes, and shows the score", async () => {
  expect(await play(["Hm?", "switch on", "switch", "It is.", "too late"])).toBe(
    `
task 0 of lamp, test
  lamp/test/0

policy
  You switch the lamp.

tools
  switch()

user
  Lamp on, please.

You are the agent. Write to the user, or call a tool: name {"key": "value"} or name key=value. /help shows more.
> Hm?

user
  Is it on?
> switch on
Not sent: switch is a tool, and its arguments cannot be read from "on"; expected switch {"key": …} or switch key=value, with quotes around a value with spaces; to say this to the user, write /say switch …
> switch

switch
  on\\x1b[2J
> It is.

user
  Bye.

The conversation is over: the user left. Reward 1
  {
    "isOn": true
  }
`,
  );
});

test.each([
  ["the end of the input", []],
  ["/quit", ["/quit"]],
])("%s ends the conversation and scores it", async (_, lines) => {
  expect(await play(lines)).toContain("The conversation is over: you left. Reward 0\n");
});

test("/help lists the commands", async () => {
  expect(await play(["/help"])).toContain("  /quit       end the conversation and score it");
});

test("an error of the environment is the environment's failure", async () => {
  await expect(play(["switch"], lamp({ breaks: true }))).rejects.toMatchObject({
    code: "environment/exception",
    message: "Cannot answer tool switch: the fuse is blown",
  });
});

test("Tab completes words at the start of a line", () => {
  expect(completionsOf("/to", ["switch", "/tools", "/tool"])).toEqual([["/tools", "/tool"], "/to"]);
});

test("the user is that of a run, and no second person", () => {
  expect(readMyChoices("storefront", { task: 3 })).toEqual({
    taskIndex: 3,
    seed: 0,
    user: { strategy: "scripted", isAssumed: true },
  });
  expect(() => readMyChoices("storefront", { user: "human" })).toThrow(UsageError);
  expect(() => readMyChoices("tau-retail", {})).toThrow(/Missing --user/);
});
