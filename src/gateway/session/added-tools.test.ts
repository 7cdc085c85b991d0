import { describe, expect, test } from "vitest";
import { writeCompactJson } from "../../json/exact-json.ts";
import type { RequestedTurn, ToolSet } from "../conversation.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { calledName } from "../dialects/responses-items.ts";
import { responsesDialect } from "../dialects/responses.ts";
import { FieldCache } from "./field-cache.ts";
import { RecentBodies } from "./recent-bodies.ts";
import { ToolCache } from "./tool-cache.ts";

/** Returns a function that reads the bodies of one session in turn. */
function reader(cache = new ToolCache()): (body: string) => RequestedTurn {
  const bodies = new RecentBodies(new FieldCache());
  const recollection = {
    toolsOf: (dialect: DialectName, list: readonly unknown[], read: () => ToolSet) =>
      cache.find({ dialect, list }, read),
  };
  return (body) => {
    const found = bodies.recognise(responsesDialect, Buffer.from(body));
    return bodies.read(responsesDialect, found, recollection);
  };
}

const paint =
  '{"type":"function","name":"paint","parameters":{"type":"object","properties":{"n":{"maximum":1.0}}}}';
const group = '{"type":"namespace","name":"team","tools":[{"type":"custom","name":"ask"}]}';
const item = (...tools: readonly string[]) =>
  `{"type":"additional_tools","role":"developer","id":"at_1","tools":[${tools.join(",")}]}`;
const user = (text: string) => `{"role":"user","content":"${text}"}`;
const bodyOf = (items: readonly string[], more = "") => `{${more}"input":[${items.join(",")}]}`;

const namesOf = ({ tools }: RequestedTurn) => tools.map(({ name }) => name);

describe("tools of an `additional_tools` item", () => {
  test("are shown to the policy, and called by the client's names", () => {
    const requested = reader()(bodyOf([item(group, paint), user("Hi")]));
    expect(namesOf(requested)).toEqual(["team__ask", "paint"]);
    expect(requested.callForms).toEqual(new Map([["team__ask", "custom"]]));
    expect(calledName(requested, "team__ask")).toEqual({ namespace: "team", name: "ask" });
    expect(requested.messages).toEqual([{ role: "user", content: "Hi" }]);
    expect(writeCompactJson(requested.tools[1]!.openai)).toContain('"maximum":1.0');
  });

  test("stay while the conversation grows, and later ones are added", () => {
    const read = reader();
    const items = [item(group), user("Hi"), user("Go on")];
    expect(namesOf(read(bodyOf(items)))).toEqual(["team__ask"]);
    expect(namesOf(read(bodyOf([...items, user("And on")])))).toEqual(["team__ask"]);
    const later = [...items, user("And on"), item(group, paint), user("Stop")];
    expect(namesOf(read(bodyOf(later)))).toEqual(["team__ask", "paint"]);
    expect(namesOf(read(bodyOf(items)))).toEqual(["team__ask"]);
  });

  test("follow those of the request, each once", () => {
    const requested = reader()(bodyOf([item(paint, group), user("Hi")], `"tools":[${paint}],`));
    expect(namesOf(requested)).toEqual(["paint", "team__ask"]);
  });

  test("of two sessions differ if only the form of their numbers differs", () => {
    const cache = new ToolCache();
    const schemaOf = (tool: string) =>
      writeCompactJson(reader(cache)(bodyOf([item(tool), user("Hi")])).tools[0]!.openai);
    expect(schemaOf(paint)).toContain('"maximum":1.0}');
    expect(schemaOf(paint.replace("1.0", "1"))).toContain('"maximum":1}');
  });

  test("given twice in one item are shown once", () => {
    expect(namesOf(reader()(bodyOf([item(paint, paint), user("Hi")])))).toEqual(["paint"]);
  });

  test("can be chosen, and are refused with their path", () => {
    const choice = '"tool_choice":{"type":"function","name":"paint"},';
    const requested = reader()(bodyOf([item(paint), user("Hi")], choice));
    expect(requested.toolChoice).toEqual({ type: "named", name: "paint" });
    expect(() => reader()(bodyOf([user("Hi"), item(paint, '{"type":"new"}')]))).toThrow(
      'Cannot read input[1].tools[1].type: there is no tool of type "new"',
    );
    expect(() => reader()(bodyOf(['{"type":"additional_tools"}']))).toThrow(
      "Cannot read input[0].tools: expected a list, not nothing",
    );
  });
});
