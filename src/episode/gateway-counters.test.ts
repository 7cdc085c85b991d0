import { describe, expect, test } from "vitest";
import { GatewayCounters, warningOf } from "./gateway-counters.ts";

describe("GatewayCounters", () => {
  test("counts everything in the total, too", () => {
    const total = new GatewayCounters();
    const [one, other] = [new GatewayCounters(total), new GatewayCounters(total)];
    one.turn("first", ["call-without-result", "call-without-result"]);
    one.turn(undefined, []);
    one.unenforced("tool web_search");
    one.leftOutCalls(2);
    other.refused("Cannot read messages[3].content: it is missing");
    other.refused("Cannot read messages[4].content: it is missing");
    other.ignored(["seed", "__proto__"]);
    other.replayed();
    other.undelivered();
    other.unenforced("tool web_search");
    other.rejected([{}, { rejected: "client" }, { rejected: "client" }]);
    expect(one.someCounts).toEqual({
      turnCount: 2,
      continuedCount: 1,
      roots: { first: 1 },
      notes: { "call-without-result": 2 },
      unenforced: { "tool web_search": 1 },
      leftOutCallCount: 2,
    });
    expect(total.counts).toEqual({
      turnCount: 2,
      continuedCount: 1,
      roots: { first: 1 },
      notes: { "call-without-result": 2 },
      replayedCount: 1,
      undeliveredCount: 1,
      unenforced: { "tool web_search": 2 },
      leftOutCallCount: 2,
      rejectedTurns: { client: 2 },
      refused: { "Cannot read messages[].content: it is missing": 2 },
      ignoredFields: Object.fromEntries([
        ["seed", 1],
        ["__proto__", 1],
      ]),
    });
  });

  test("adds up counts that were written as JSON", () => {
    const counters = new GatewayCounters();
    for (const line of [
      '{"unenforced":{"logit_bias":3}}',
      '{"turnCount":2,"unenforced":{"n":1}}',
    ]) {
      counters.add(JSON.parse(line) as object);
    }
    expect(counters.someCounts).toEqual({ turnCount: 2, unenforced: { logit_bias: 3, n: 1 } });
  });

  test("keeps at most 100 names besides `others`, and 200 characters of each", () => {
    const counters = new GatewayCounters();
    const long = "x".repeat(300);
    for (let index = 0; index < 150; index++) counters.unenforced(`${index}${long}`);
    const names = Object.entries(counters.counts.unenforced);
    expect(names).toHaveLength(101);
    expect(names.at(-2)).toEqual([`99${"x".repeat(198)}`, 1]);
    expect(names.at(-1)).toEqual(["others", 50]);
  });
});

describe("warningOf()", () => {
  test("names the causes of roots above a twentieth of the turns", () => {
    const counters = new GatewayCounters();
    const turn = (count: number, cause?: string) => {
      for (let index = 0; index < count; index++) counters.turn(cause, []);
    };
    turn(1, "first");
    turn(38);
    turn(1, "history-edited");
    expect(warningOf(counters.counts)).toBeUndefined();
    turn(2, "history-edited");
    expect(warningOf(counters.counts)).toBe(
      "3 of 42 turns could not continue the conversation: history-edited 3",
    );
  });

  test("names the tools that the policy was not shown, and no other feature", () => {
    const counters = new GatewayCounters();
    for (const what of ["logit_bias", "tool web_search"]) counters.unenforced(what);
    expect(warningOf(counters.counts)).toBe(
      "requests gave tools of a server, which the policy was not shown: web_search 1",
    );
  });
});
