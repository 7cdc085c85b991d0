import { describe, expect, test } from "vitest";
import type { ClientMessage } from "../conversation.ts";
import { PlayedSession, result, system, user, type MadeCall } from "./played-session.fixture.ts";

const opening = [system("You write code."), user("Fix the parser, and test it.")];
const order = "Summarise the conversation so far for another agent, in two sentences.";
const summary =
  "<summary>\nThe user wants the parser to be fixed and tested.\nThe fix is done, the test is missing.\n</summary>";
const look: MadeCall = ["look", { file: "a.ts" }];
const tools = ["look", "task"];

/** Plays one call of the main conversation, and returns the conversation after its result. */
function begin(session: PlayedSession, labels = {}): ClientMessage[] {
  const turn = session.ask({ messages: opening, calls: [look], tools, labels });
  return [...opening, turn, result("line 1", session.tree.nodes.length - 1)];
}

/** The conversation that a client starts with a summary. */
const restart = (text: string): ClientMessage[] => [
  opening[0]!,
  user(`This is what happened before:\n<before>\n  ${text.replaceAll("\n", "\n  ")}\n</before>`),
];

describe("roles", () => {
  test("one conversation is main", () => {
    const session = new PlayedSession();
    session.ask({ messages: begin(session), text: "It is fixed.", tools });
    expect(session.lines).toEqual(["main", "main"]);
  });

  test("a second conversation without evidence is unknown", () => {
    const session = new PlayedSession();
    begin(session);
    session.ask({ messages: [user("Name three colours.")], text: "red" });
    expect(session.lines).toEqual(["main", "unknown"]);
  });

  test("a conversation that starts with a call's argument is a sub-agent's, which returns", () => {
    const session = new PlayedSession();
    const prompt = "Read all tests.\nReport the ones that fail.";
    const task: MadeCall = ["task", { description: "tests", prompt }];
    const turn = session.ask({ messages: opening, calls: [task], tools });
    const asked = [system("You help."), user(`Today is Monday.\n${prompt}\n`)];
    const first = session.ask({ messages: asked, calls: [look] });
    const report = "No test fails.\nThe parser has no test.";
    session.ask({ messages: [...asked, first, result("ok", 1)], text: report });
    const back = result(JSON.stringify({ status: { completed: report } }), 0);
    session.ask({ messages: [...opening, turn, back], text: "Then I write one.", tools });
    expect(session.lines).toEqual([
      "main",
      "subagent subagent_call<-0",
      "subagent",
      "main subagent_return<-2",
    ]);
  });

  test("a second call with the report of the first one starts another sub-agent", () => {
    const session = new PlayedSession();
    const judge = system("You judge.");
    const ask = (prompt: string, text: string): string => {
      const asked = [judge, user(prompt)];
      const first = session.ask({ messages: asked, calls: [look] });
      const { length } = session.tree.nodes;
      session.ask({ messages: [...asked, first, result("ok", length - 1)], text });
      return text;
    };
    const one = "Judge the parser, please.";
    const call = (prompt: string): MadeCall => ["task", { prompt }];
    const turn = session.ask({ messages: opening, calls: [call(one)], tools });
    const report = ask(one, "The parser is fine, but it has no test.");
    const two = `Judge the parser again. You said:\n${report}`;
    const history = [...opening, turn, result(report, 0)];
    session.ask({ messages: history, calls: [call(two)], tools });
    ask(two, "Now it has a test, and the test passes.");
    expect(session.lines).toEqual([
      "main",
      "subagent subagent_call<-0",
      "subagent",
      "main subagent_return<-2",
      "subagent subagent_call<-3",
      "subagent",
    ]);
  });

  test("a part of an argument, or a short one, starts no sub-agent", () => {
    const session = new PlayedSession();
    const task: MadeCall = ["task", { prompt: "Read all tests, please.", name: "tests" }];
    session.ask({ messages: opening, calls: [task], tools });
    session.ask({ messages: [user("Read all tests, please. Or not.")], text: "a" });
    session.ask({ messages: [user("tests")], text: "b" });
    expect(session.lines).toEqual(["main", "unknown", "unknown"]);
  });

  test("a short argument starts a sub-agent only while its call is open, or if the client says so", () => {
    const session = new PlayedSession();
    const read: MadeCall = ["look", { file: "src/parser.ts" }];
    const turn = session.ask({ messages: opening, calls: [read], tools });
    const listed = [user("Explain these files:\nsrc/parser.ts\nsrc/lexer.ts")];
    session.ask({ messages: listed, text: "a" });
    session.ask({ messages: [...opening, turn, result("line 1", 0)], text: "Done.", tools });
    session.ask({ messages: [...listed, user("Be brief.")], text: "b" });
    const agent = { "x-claude-code-agent-id": "a" };
    session.ask({ messages: [user("src/parser.ts")], text: "c", labels: agent });
    expect(session.lines).toEqual([
      "main",
      "subagent subagent_call<-0",
      "main",
      "unknown",
      "subagent subagent_call<-0",
    ]);
  });

  test("a client's header names a sub-agent, also if it continues the same turns", () => {
    const session = new PlayedSession();
    const labels = { "x-claude-code-session-id": "s" };
    const history = begin(session, labels);
    const agent = { ...labels, "x-claude-code-agent-id": "a" };
    session.ask({ messages: history, text: "I am the fork.", tools, labels: agent });
    session.ask({ messages: [user("Look.")], text: "I looked.", labels: agent });
    session.ask({ messages: history, text: "I am the agent.", tools, labels });
    expect(session.lines).toEqual([
      "main",
      "subagent continuation<-0",
      "subagent",
      "main continuation<-0",
    ]);
  });

  test("a title has its own role, and the conversation after it is main", () => {
    const session = new PlayedSession();
    const asked = [system("You are a title generator. Be brief."), user("Fix the parser.")];
    session.ask({ messages: asked, text: "Fixing the parser" });
    begin(session);
    expect(session.lines).toEqual(["title", "main"]);
  });

  test("a rewritten history keeps the role of the turn that it repeats", () => {
    const session = new PlayedSession();
    const [, , turn] = begin(session);
    session.ask({
      messages: [system("Be quick."), turn!, result("line 1", 0)],
      text: "Done",
      tools,
    });
    expect(session.lines).toEqual(["main", "main continuation<-0"]);
  });
});

describe("compaction", () => {
  test("a root with the text of a turn continues the conversation that the turn summarised", () => {
    const session = new PlayedSession();
    const history = begin(session);
    session.ask({ messages: [...history, user(order)], text: summary, tools });
    const next = session.ask({ messages: restart(summary), calls: [look], tools });
    session.ask({ messages: [...restart(summary), next, result("b", 2)], text: "Done.", tools });
    expect(session.lines).toEqual([
      "main",
      "compaction compaction_attempt<-0",
      "main compaction<-1",
      "main",
    ]);
  });

  test.each(["", "You write code.\n"])(
    "the billing line, which differs between requests, separates no conversation if %j stands before it",
    (before) => {
      const session = new PlayedSession();
      const first = (stamp: string) =>
        system(`${before}x-anthropic-billing-header: cc_prev_req=${stamp};\nBe brief.`);
      const history = [first("one"), opening[1]!];
      const turn = session.ask({ messages: history, calls: [look], tools });
      const asked = [first("two"), opening[1]!, turn, result("line 1", 0), user(order)];
      session.ask({ messages: asked, text: summary, tools });
      const next = [first("three"), ...restart(summary).slice(1)];
      session.ask({ messages: next, text: "Done.", tools });
      expect(session.lines).toEqual([
        "main",
        "compaction compaction_attempt<-0",
        "main compaction<-1",
      ]);
    },
  );

  test("a summary of a conversation of its own may come back as an assistant turn", () => {
    const session = new PlayedSession();
    begin(session);
    const asked = [system("You summarise."), user(`Here it is: I called look.\n${order}`)];
    const said = session.ask({ messages: asked, text: summary });
    const messages = [opening[0]!, user("What did we do?"), said, user("Continue.")];
    session.ask({ messages, text: "I test it.", tools });
    expect(session.lines).toEqual([
      "main",
      "compaction compaction_attempt<-0",
      "main compaction<-1",
    ]);
  });

  test("a summary may stand before turns that are kept", () => {
    const session = new PlayedSession();
    const [, , turn, line] = begin(session);
    session.ask({ messages: [user(`Here it is: I called look.\n${order}`)], text: summary });
    const messages = [opening[0]!, user(`The story so far:\n${summary}`), turn!, line!];
    session.ask({ messages, text: "I test it.", tools });
    expect(session.lines).toEqual([
      "main",
      "compaction compaction_attempt<-0",
      "main compaction<-1",
    ]);
  });

  test("an agent that gets another one's answer does not summarise it", () => {
    const session = new PlayedSession();
    const writer = [system("You write."), user("Write a long line about rivers.")];
    const written = "A river is a line that the land draws to the sea.";
    session.ask({ messages: writer, text: written });
    session.ask({
      messages: [system("You judge."), user(`Judge this:\n${written}`)],
      text: "Good.",
    });
    session.ask({ messages: [writer[0]!, user(`Improve this:\n${written}`)], text: "I cannot." });
    expect(session.lines).toEqual(["main", "unknown", "unknown"]);
  });

  test("a summary that was replaced by a later one is rejected", () => {
    const session = new PlayedSession();
    const history = begin(session);
    session.ask({ messages: [...history, user(order)], calls: [look], tools });
    session.ask({ messages: [...history, user(`${order}\nDo not call.`)], text: summary, tools });
    session.ask({ messages: restart(summary), text: "I test it.", tools });
    expect(session.lines).toEqual([
      "main",
      "compaction compaction_attempt<-0 !later-summary",
      "compaction compaction_attempt<-0",
      "main compaction<-2",
    ]);
  });

  test("a summary that nothing used stays trained if no other one was used", () => {
    const session = new PlayedSession();
    const history = begin(session);
    session.ask({ messages: [...history, user(order)], text: summary, tools });
    session.ask({ messages: history, text: "I test it.", tools });
    expect(session.lines).toEqual(["main", "main continuation<-0", "main continuation<-0"]);
  });

  test("each summary of a session is used by its own root", () => {
    const session = new PlayedSession();
    const history = begin(session);
    session.ask({ messages: [...history, user(order)], text: summary, tools });
    const next = session.ask({ messages: restart(summary), calls: [look], tools });
    const later = [...restart(summary), next, result("b", 2), user(order)];
    const second = "<summary>\nThe parser is fixed, and one test of it was written.\n</summary>";
    session.ask({ messages: later, text: second, tools });
    session.ask({ messages: restart(second), text: "All is done.", tools });
    expect(session.lines).toEqual([
      "main",
      "compaction compaction_attempt<-0",
      "main compaction<-1",
      "compaction compaction_attempt<-2",
      "main compaction<-3",
    ]);
  });
});

describe("Codex's headers", () => {
  const labels = (window: number, kind = "turn") => ({
    "thread-id": "t",
    "x-codex-window-id": `t:${window}`,
    "x-codex-request-kind": kind,
  });

  test("the next window continues the last summary, whatever its text is", () => {
    const session = new PlayedSession();
    const history = begin(session, labels(0));
    const asked = [...history, user(order)];
    session.ask({ messages: asked, text: "short", labels: labels(0, "compaction") });
    session.ask({ messages: asked, text: "brief", labels: labels(0, "compaction") });
    session.ask({ messages: restart("…"), text: "I test it.", tools, labels: labels(1) });
    expect(session.lines).toEqual([
      "main",
      "compaction compaction_attempt<-0 !later-summary",
      "compaction compaction_attempt<-0",
      "main compaction<-2",
    ]);
  });

  test("a summary is rejected if its window continues without it", () => {
    const session = new PlayedSession();
    const history = begin(session, labels(0));
    const asked = [...history, user(order)];
    session.ask({ messages: asked, text: "short", labels: labels(0, "compaction") });
    session.ask({ messages: history, text: "I test it.", tools, labels: labels(0) });
    expect(session.lines).toEqual(["main", "compaction compaction_attempt<-0 !client", "main"]);
  });
});

describe("repeated requests", () => {
  test("the reply that was not continued is rejected", () => {
    const session = new PlayedSession();
    const history = begin(session);
    session.ask({ messages: history, text: "lost", tools });
    const kept = session.ask({ messages: history, text: "kept", tools });
    session.ask({ messages: [...history, kept, user("Go on.")], text: "I go on.", tools });
    expect(session.lines).toEqual([
      "main",
      "retry continuation<-0 !resumed-sibling",
      "main continuation<-0",
      "main",
    ]);
  });

  test("none is rejected before one is continued, or if all are", () => {
    const session = new PlayedSession();
    const one = session.ask({ messages: opening, text: "one", tools });
    const two = session.ask({ messages: opening, text: "two", tools });
    expect(session.lines).toEqual(["main", "main"]);
    session.ask({ messages: [...opening, two, user("Go on.")], text: "2", tools });
    expect(session.lines).toEqual(["retry !resumed-sibling", "main", "main"]);
    session.ask({ messages: [...opening, one, user("Go on.")], text: "1", tools });
    expect(session.lines).toEqual(["main", "main", "main", "main"]);
  });

  test("the last reply stays trained if the client went back to a request that it had continued", () => {
    const session = new PlayedSession();
    const history = begin(session);
    const left = session.ask({ messages: history, text: "left", tools });
    session.ask({ messages: [...history, left, user("Go on.")], text: "I go on.", tools });
    session.ask({ messages: history, text: "It is fixed.", tools });
    expect(session.lines).toEqual(["main", "main continuation<-0", "main", "main continuation<-0"]);
  });

  test("an agent that repeats its request on purpose retries nothing with its single answers", () => {
    const session = new PlayedSession();
    const round = (text: string): void => {
      const turn = session.ask({ messages: opening, calls: [look], tools });
      const { length } = session.tree.nodes;
      session.ask({ messages: [...opening, turn, result("line 1", length - 1)], text, tools });
    };
    session.ask({ messages: opening, text: "Nothing to do.", tools });
    round("one");
    expect(session.lines).toEqual(["retry !resumed-sibling", "main", "main"]);
    session.ask({ messages: opening, text: "Still nothing to do.", tools });
    session.ask({ messages: opening, calls: [look], tools });
    round("two");
    expect(session.lines).toEqual([
      "main",
      "main",
      "main",
      "main",
      "retry !resumed-sibling",
      "main",
      "main",
    ]);
  });

  test("a sub-agent's short report stays trained if another one with the same prompt went further", () => {
    const session = new PlayedSession();
    const prompt = "Count the tests.";
    const calls: MadeCall[] = [
      ["task", { prompt }],
      ["task", { prompt }],
    ];
    const turn = session.ask({ messages: opening, calls, tools });
    session.ask({ messages: [user(prompt)], text: "7" });
    const first = session.ask({ messages: [user(prompt)], calls: [look] });
    session.ask({ messages: [user(prompt), first, result("a", 2)], text: "8" });
    const back = [result("7", 0), result("8", 0, 1)];
    session.ask({ messages: [...opening, turn, ...back], text: "There are 8.", tools });
    expect(session.lines).toEqual([
      "main",
      "subagent subagent_call<-0",
      "subagent subagent_call<-0",
      "subagent",
      "main",
    ]);
  });

  test("equal requests of two sub-agents do not reject each other", () => {
    const session = new PlayedSession();
    const ask = (text: string, agent: string, messages = opening) =>
      session.ask({ messages, text, labels: { "x-claude-code-agent-id": agent } });
    ask("one", "a");
    const two = ask("two", "b");
    ask("2", "b", [...opening, two, user("Go on.")]);
    expect(session.lines).toEqual(["subagent", "subagent", "subagent"]);
  });
});
