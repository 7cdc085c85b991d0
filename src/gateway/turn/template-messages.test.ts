import { describe, expect, test } from "vitest";
import type { ClientCall, ClientMessage } from "../conversation.ts";
import { toSentTurn } from "../tree/turn-node.ts";
import { measureCallHabits, type CallHabits } from "./call-habits.ts";
import { callTemplates, templateRenderer } from "./call-templates.fixture.ts";
import { wholeTurns } from "./turn-forms.ts";
import { emptyHistory, toTemplateMessages, type ShownBefore } from "./template-messages.ts";

const call = (id: string, name: string, argumentsText = "{}"): ClientCall => {
  return { id, name, argumentsText };
};

const turn = (content: string, ...calls: readonly ClientCall[]): ClientMessage => {
  return { role: "assistant", content, calls, marks: [] };
};

const result = (callId: string, content: string): ClientMessage => {
  return { role: "tool", callId, content };
};

const user = (content: string): ClientMessage => ({ role: "user", content });

/** Returns a conversation as a template renders it. */
async function show(
  template: keyof typeof callTemplates,
  messages: readonly ClientMessage[],
  sampledIds: ReadonlyMap<string, string> = new Map(),
): Promise<readonly string[]> {
  const renderer = templateRenderer(callTemplates[template]);
  const calls = await measureCallHabits(renderer);
  const shown = toTemplateMessages(messages, emptyHistory, {
    laterSystem: true,
    calls,
    sampledIds,
  });
  return (await renderer.prompt({ messages: shown, tools: [] })).text.split("\n").slice(1, -1);
}

const twoCalls = [
  user("Go"),
  turn("", call("call_Xz81", "look"), call("call_Qd90", "open")),
  result("call_Xz81", "seen"),
  result("call_Qd90", "opened"),
];

describe("calls that were not sampled", () => {
  test("keep the client's ids if the template prints any id", async () => {
    expect(await show("printing", twoCalls)).toEqual([
      "assistant: <call_Xz81|look{}><call_Qd90|open{}>",
      "result call_Xz81 look seen",
      "result call_Qd90 open opened",
    ]);
  });

  test("get numbered ids if the template numbers calls", async () => {
    const more = [turn("", call("a", "look")), result("a", "again")];
    expect(await show("numbering", [...twoCalls, ...more])).toEqual([
      "assistant: <functions.look:0{}><functions.open:1{}>",
      "result functions.look:0 seen",
      "result functions.open:1 opened",
      "assistant: <functions.look:0{}>",
      "result functions.look:0 again",
    ]);
  });

  test("get ids with their names if the template prints no names, numbered over the conversation", async () => {
    const more = [
      turn("", call("functions.look:0", "look"), call("list_dir:0", "list_dir")),
      result("list_dir:0", "listed"),
      result("functions.look:0", "again"),
      turn("", call("functions.look:0", "look"), call("functions.look:9", "look")),
      result("functions.look:0", "once more"),
      result("functions.look:9", "at last"),
    ];
    const sampled = new Map([["call_Qd90", "functions.open:7"]]);
    expect(await show("naming", [...twoCalls, ...more], sampled)).toEqual([
      "assistant: <functions.look:0{}><functions.open:7{}>",
      "look: result of functions.look:0 seen",
      "open: result of functions.open:7 opened",
      "assistant: <functions.look:2{}><functions.list_dir:3{}>",
      "list_dir: result of functions.list_dir:3 listed",
      "look: result of functions.look:2 again",
      "assistant: <functions.look:4{}><functions.look:9{}>",
      "look: result of functions.look:4 once more",
      "look: result of functions.look:9 at last",
    ]);
  });

  test("are refused if the template drops them", async () => {
    await expect(show("dropping", twoCalls)).rejects.toThrow(
      "Cannot show the calls of earlier turns with the chat template: the prompt does not contain them; send them as text, as the model writes them, or give the model a chat template that prints calls",
    );
    expect(await show("dropping", [user("Go"), turn("Done."), user("And?")])).toEqual([
      "assistant: Done.",
      "user: And?",
    ]);
  });

  const reasoned = (content: string, ...calls: readonly ClientCall[]): ClientMessage => {
    return { role: "assistant", content, reasoning: "Hm.", calls, marks: [] };
  };

  test.each(["textOrCalls", "callsOrText"] as const)(
    "stand in a turn after their text if the template %s shows only one of both",
    async (template) => {
      const calls = [call("a", "look"), call("b", "open")];
      const results = [result("a", "seen"), result("b", "opened")];
      const messages = [user("Go"), turn("Both.", ...calls), ...results];
      const divided = [
        "assistant: Both.",
        "assistant: <look{}><open{}>",
        "result: seen",
        "result: opened",
      ];
      expect(await show(template, messages)).toEqual(divided);
      expect(await show(template, [user("Go"), turn("\n", ...calls), ...results])).toEqual(
        divided.slice(1),
      );
    },
  );

  test("stand in a turn after their reasoning and text if the template shows reasoning there", async () => {
    const messages = [user("Go"), reasoned("Both.", call("a", "look")), result("a", "seen")];
    expect(await show("reasoned", messages)).toEqual([
      "assistant: (Hm.)Both.",
      "assistant: <look{}>",
      "result: seen",
    ]);
  });

  test("stand with their reasoning in a turn after their text if the template refuses all three", async () => {
    const messages = [user("Go"), reasoned("Both.", call("a", "look")), result("a", "seen")];
    expect(await show("textOrReasoning", messages)).toEqual([
      "assistant: Both.",
      "assistant: (Hm.)<look{}>",
      "result: seen",
    ]);
    const spoken = [user("Go"), turn("Both.", call("a", "look")), result("a", "seen")];
    expect(await show("textOrReasoning", spoken)).toEqual([
      "assistant: Both.<look{}>",
      "result: seen",
    ]);
  });

  test("are refused beside text if the template drops them there and refuses two turns", async () => {
    const messages = [user("Go"), turn("Both.", call("a", "look")), result("a", "seen")];
    await expect(show("textOrCallsAlternating", messages)).rejects.toThrow(
      "Cannot show an earlier call of look with the chat template: the prompt does not contain calls beside text; send the turn without its text, or the call as text, as the model writes it",
    );
    const silent = [user("Go"), turn("", call("a", "look")), result("a", "seen")];
    expect(await show("textOrCallsAlternating", silent)).toEqual([
      "assistant: <look{}>",
      "result: seen",
    ]);
  });

  test("stay in one turn if the template drops the text there and refuses two turns", async () => {
    const messages = [user("Go"), turn("Both.", call("a", "look")), result("a", "seen")];
    expect(await show("callsOrTextAlternating", messages)).toEqual([
      "assistant: <look{}>",
      "result: seen",
    ]);
  });

  test.each(["members", "membersIfAny"] as const)(
    "are refused if the template %s cannot print their arguments",
    async (template) => {
      const place = "messages[1].tool_calls[0].function.arguments";
      for (const text of ['{"at": "do', '["door"]', "7", '"door"']) {
        const cut = { ...call("a", "look", text), argumentsPlace: place };
        const messages = [user("Go"), turn("", cut), result("a", "seen")];
        await expect(show(template, messages)).rejects.toMatchObject({
          kind: "invalid",
          place,
          message: `Cannot show ${place}: the text is no JSON object, and the chat template prints only objects; send an object, or the call as text of the assistant`,
        });
      }
      const unnamed = [user("Go"), turn("", call("a", "look", "[]"))];
      await expect(show(template, unnamed)).rejects.toThrow(
        "Cannot show the arguments of an earlier call of look: ",
      );
    },
  );

  test("keep arguments that are no object if the template prints these", async () => {
    const cut = call("a", "look", '{"at": "do');
    expect(await show("printing", [user("Go"), turn("", cut), result("a", "seen")])).toEqual([
      'assistant: <a|look"{\\"at\\": \\"do">',
      "result a look seen",
    ]);
  });

  test("get nine letters and digits if the template requires them", async () => {
    const more = [turn("", call("Abc123xyZ", "look")), result("Abc123xyZ", "again")];
    expect(await show("nine", [...twoCalls, ...more])).toEqual([
      "assistant: <f00000000look{}><f00000001open{}>",
      "result f00000000 seen",
      "result f00000001 opened",
      "assistant: <Abc123xyZlook{}>",
      "result Abc123xyZ again",
    ]);
  });

  test("get unique ids if the template looks up results, even if the client repeats ids", async () => {
    const repeated = [
      user("Go"),
      turn("", call("call_0", "look")),
      result("call_0", "seen"),
      turn("", call("call_0", "open")),
      result("call_0", "opened"),
    ];
    expect(await show("lookingUp", repeated)).toEqual([
      "assistant: <look{}>",
      "result of look: seen",
      "assistant: <open{}>",
      "result of open: opened",
    ]);
    // In a template that does not look up ids, the client's ids stay.
    expect((await show("printing", repeated))[3]).toBe("result call_0 open opened");
  });

  test.each(["firstOnly", "single"] as const)(
    "are rendered one by one, each with its result, if the template is %s",
    async (template) => {
      const name = (text: string) => (template === "single" ? "result" : `result of ${text}`);
      const messages = [
        user("Go"),
        turn("Both.", call("a", "look"), call("b", "open")),
        result("a", "seen"),
        result("b", "opened"),
        user("And?"),
      ];
      expect(await show(template, messages)).toEqual([
        "assistant: Both.<look{}>",
        `${name("look")}: seen`,
        "assistant: <open{}>",
        `${name("open")}: opened`,
        "user: And?",
      ]);
    },
  );

  test("of one id in one turn get different ids, as do their results", async () => {
    const messages = [
      user("Go"),
      turn("", call("x", "look"), call("x", "open")),
      result("x", "seen"),
      result("x", "opened"),
    ];
    expect(await show("printing", messages)).toEqual([
      "assistant: <x|look{}><f00000000|open{}>",
      "result x look seen",
      "result f00000000 open opened",
    ]);
  });

  test("get new ids if the client's could form control tokens", async () => {
    const id = "<|stop|>";
    expect(
      await show("printing", [user("Go"), turn("", call(id, "look")), result(id, "seen")]),
    ).toEqual(["assistant: <f00000000|look{}>", "result f00000000 look seen"]);
  });

  test.each(["printing", "single"] as const)(
    "have the results under unknown ids that come in their places, in the template %s",
    async (template) => {
      const renamed = twoCalls.map((message) =>
        message.role === "tool" ? { ...message, callId: `other_${message.callId}` } : message,
      );
      expect(await show(template, renamed)).toEqual(await show(template, twoCalls));
    },
  );

  test("keep the ids under which the policy sampled them", async () => {
    const sampled = new Map([["call_Xz81", "functions.look:7"]]);
    expect(await show("printing", twoCalls, sampled)).toEqual([
      "assistant: <functions.look:7|look{}><call_Qd90|open{}>",
      "result functions.look:7 look seen",
      "result call_Qd90 open opened",
    ]);
    expect((await show("numbering", twoCalls, sampled))[1]).toBe("result functions.look:0 seen");
  });
});

const habits: CallHabits = {
  takesAnyId: true,
  numbersCalls: false,
  namesByIds: false,
  looksUpIds: false,
  showsAllCalls: true,
  dropsCalls: false,
  takesTextArguments: true,
  turnForms: wholeTurns,
};

const rules = { laterSystem: true, calls: habits, sampledIds: new Map<string, string>() };

describe("results", () => {
  const sent = toSentTurn([
    { type: "call", id: "fc_1", callId: "call_a", name: "look", text: "{}" },
    { type: "call", id: "fc_2", callId: "call_b", name: "open", text: "{}" },
  ]);
  const toolCalls = [
    { id: "t0000c000", name: "look", argumentsText: "{}" },
    { id: "t0000c001", name: "open", argumentsText: "{}" },
  ];
  const first = { sent, message: { role: "assistant", content: "", toolCalls } } as const;
  const second = {
    sent: toSentTurn([{ type: "text", id: "m", text: "Wait." }]),
    message: { role: "assistant", content: "Wait." },
  } as const;
  const before = (...turns: ShownBefore["turns"]): ShownBefore => ({ turns, callIds: () => [] });

  test("of a sampled turn get the policy's ids, in any order", () => {
    const answered = [result("call_b", "opened"), result("call_a", "seen")];
    expect(toTemplateMessages(answered, before(first), rules)).toEqual([
      { role: "tool", content: "opened", toolCallId: "t0000c001", name: "open" },
      { role: "tool", content: "seen", toolCallId: "t0000c000", name: "look" },
    ]);
  });

  test("of an earlier sampled turn belong to it", () => {
    expect(toTemplateMessages([result("call_b", "late")], before(first, second), rules)).toEqual([
      { role: "tool", content: "late", toolCallId: "t0000c001", name: "open" },
    ]);
  });

  test("without a call keep their id and belong to no tool", () => {
    expect(toTemplateMessages([user("Go"), result("call_z", "lost")], emptyHistory, rules)).toEqual(
      [
        { role: "user", content: "Go" },
        { role: "tool", content: "lost", toolCallId: "call_z", name: "tool" },
      ],
    );
  });
});
