import { describe, expect, test } from "vitest";
import { defineEnvironment } from "../../environment/define-environment.ts";
import type { DefinedUser } from "../../environment/defined-user.ts";
import { createScriptedUser } from "../../user/scripted-user.ts";
import type { User } from "../../user/user.ts";
import { checkEnvironment } from "./check-environment.ts";

interface Loan {
  readonly instruction: string;
  book: string;
}

const noCost = { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 };
const bye = { text: "Bye.", leaves: true } as const;

/** A user that leaves at the first answer, with some members replaced. */
function own(
  session: Readonly<Record<string, unknown>>,
  more: Partial<User<Loan>> = {},
): User<Loan> {
  const sound = { begin: async () => "Dune?", reply: async () => bye, usage: () => noCost };
  return {
    strategy: "own",
    open: () => ({ ...sound, ...session }),
    ...more,
  };
}

/** Checks a desk with one task, and returns its problems. */
async function problemsOf(user: DefinedUser<Loan>) {
  const desk = defineEnvironment({
    name: "desk",
    tasks: [{ instruction: "Dune, please.", book: "Dune" } as Loan],
    policy: "You lend books.",
    tools: { wait: { description: "Wait.", execute: () => "waited" } },
    user,
    score: () => 0,
  });
  const { problems } = await checkEnvironment(desk, { timeoutMs: 500 });
  for (const { task } of problems) expect(task).toBe("desk/test/0");
  return problems.map(({ severity, message }) => `${severity}: ${message}`);
}

const idle = "error: task desk/test/0: an agent that does nothing: ";
const patient = "task desk/test/0: an agent that asks the user until they leave: ";
let drawn = 0;

describe("checkEnvironment() judges users as a run does:", () => {
  test.each<readonly [string, DefinedUser<Loan>, readonly (string | RegExp)[]]>([
    ["a sound user", own({}), []],
    [
      "an opening line that is no text",
      own({ begin: async () => 5 }),
      [
        `${idle}Cannot use the answer of user.begin() of own in task desk/test/0: it returned 5, expected a text`,
      ],
    ],
    [
      "a reply() that returns nothing",
      own({ reply: async () => undefined }),
      [
        `error: ${patient}Cannot use the answer of user.reply() of own in task desk/test/0: it returned nothing ` +
          '(a forgotten return?), expected a text, or { text: "…", leaves: true }',
      ],
    ],
    [
      "a line of another form",
      own({ reply: async () => ({ text: "Bye.", leaves: "yes" }) }),
      [/^error: .*it returned an object with text, leaves, expected a text, or/],
    ],
    [
      "a reply() that throws",
      own({ reply: () => Promise.reject(new Error("no persona")) }),
      [
        /^error: .*: Cannot hear the user's reply in task desk\/test\/0: no persona at broken-users\.test\.ts:\d+$/,
      ],
    ],
    [
      "a reply() that never answers",
      own({ reply: () => new Promise(() => {}) }),
      [
        `error: ${patient}Cannot hear the user's reply in task desk/test/0: no answer within 500 ms`,
      ],
    ],
    [
      "an open() that returns nothing",
      { strategy: "own", open: () => undefined as never },
      [
        `${idle}Cannot use the answer of user.open() of own for task desk/test/0: it returned nothing ` +
          "(a forgotten return?), expected a UserSession",
      ],
    ],
    [
      "an open() that throws",
      own({}, { open: () => expect.fail("no data") }),
      [
        /^error: .*Cannot open a conversation about task desk\/test\/0 with user own: no data at broken-users/,
      ],
    ],
    [
      "a session without usage()",
      own({ usage: undefined }),
      [/^error: .*its usage is nothing, expected a method$/],
    ],
    [
      "a usage() that returns no counts",
      own({ usage: () => ({}) }),
      [/^warning: .*user\.usage\(\) of own: its callCount is nothing, expected a count$/],
    ],
    [
      "an empty opening line",
      own({ begin: async () => " " }),
      [
        "warning: task desk/test/0: the conversation begins with an empty text, expected what the user wants",
      ],
    ],
    [
      "a user that never leaves",
      own({ reply: async () => "And then?" }),
      [
        /^warning: task desk\/test\/0: no episode ended: the user does not leave within 30 messages,/,
      ],
    ],
    [
      "a script that is too short",
      createScriptedUser({ lines: ["Dune?", "Please."] }),
      [
        /^error: .*: Cannot answer for task desk\/test\/0: the script has only 2 lines, expected a longer script/,
      ],
    ],
    [
      "a function that returns no lines",
      () => undefined as never,
      [
        `${idle}Cannot use the result of user() of desk for task desk/test/0: it is nothing (a forgotten return?), ` +
          'expected lines such as ["Hello.", "Yes."]',
      ],
    ],
    [
      "a user that changes the task",
      own(
        {},
        {
          open: ({ data }) => ({
            begin: async () => (data.book += "!"),
            reply: async () => bye,
            usage: () => noCost,
          }),
        },
      ),
      [
        `${idle}user.begin() changes the task, which all attempts at it share, expected an unchanged one ` +
          "(copy what you change)",
      ],
    ],
    [
      "other lines for the same seed",
      own({ reply: async () => ({ text: `Bye ${(drawn += 1)}.`, leaves: true }) }),
      [
        new RegExp(
          `^warning: ${patient}the user \\(own\\) says other lines the second time \\("Bye \\d+\\.", then "Bye \\d+\\."\\)`,
        ),
      ],
    ],
    [
      "other lines for the same seed although the user is repeatable",
      own({ begin: async () => `${(drawn += 1)}` }, { repeatable: true }),
      [/^error: .* says other lines the second time .*it says that it is repeatable; draw from/],
    ],
  ])("%s", async (_, user, expected) => {
    expect(await problemsOf(user)).toEqual(
      expected.map((line) =>
        typeof line === "string" ? line : (expect.stringMatching(line) as string),
      ),
    );
  });
});
