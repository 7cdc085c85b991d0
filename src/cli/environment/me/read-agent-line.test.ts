import { describe, expect, test } from "vitest";
import { parsePythonJson } from "../../../../packages/python-values/src/json/json-parse.ts";
import { stringifyPythonJson } from "../../../../packages/python-values/src/json/json-stringify.ts";
import { toolsFromOpenAi } from "../../../message.ts";
import { listTools, showTool } from "./describe-tools.ts";
import { readAgentLine } from "./read-agent-line.ts";

const tools = toolsFromOpenAi(
  parsePythonJson(
    JSON.stringify([
      {
        type: "function",
        function: {
          name: "lend",
          description: "Lend a book.\nFor some days.",
          parameters: {
            type: "object",
            properties: {
              title: { type: "string" },
              days: { type: "integer" },
              shelf: { enum: ["a", "b"] },
              notes: { type: ["array", "null"] },
            },
            required: ["title"],
          },
        },
      },
      { type: "function", function: { name: "close_desk" } },
    ]),
  ),
  "tools",
);

/** The line as a call in JSON, or as what else it is. */
function read(line: string): unknown {
  const found = readAgentLine(line, tools);
  if (found.type === "mistake") return found.why;
  if (found.type !== "act") return found;
  const { action } = found;
  if (action.type === "say") return { say: action.content };
  return `${action.name} ${stringifyPythonJson(action.arguments)}`;
}

describe("a line is a call if its first word is a tool:", () => {
  test.each([
    ["close_desk", "close_desk {}"],
    ["close_desk()", "close_desk {}"],
    ['lend {"title": "Dune", "days": 1.0}', 'lend {"title": "Dune", "days": 1.0}'],
    ['lend({"title": "Dune"})', 'lend {"title": "Dune"}'],
    ["lend title=Dune days=3", 'lend {"title": "Dune", "days": 3}'],
    ['lend title="The Dune", days=3', 'lend {"title": "The Dune", "days": 3}'],
    ["lend title='a \"b\"'", 'lend {"title": "a \\"b\\""}'],
    // A text stays a text where the schema wants one.
    ["lend title=42 days=many", 'lend {"title": "42", "days": "many"}'],
    ['lend title=Dune notes=["x", 1]', 'lend {"title": "Dune", "notes": ["x", 1]}'],
    ["lend title= days=1", 'lend {"title": "", "days": 1}'],
  ])("%s", (line, call) => {
    expect(read(line)).toBe(call);
  });
});

test.each([
  ["Hello, which book?", { say: "Hello, which book?" }],
  ["  lending takes time ", { say: "lending takes time" }],
  ["/say lend me your ear", { say: "lend me your ear" }],
  ["", { type: "empty" }],
  ["/quit", { type: "quit" }],
  ["/tools", { type: "show", what: "tools" }],
  ["/tool lend", { type: "show-tool", tool: tools[0] }],
])("%j is no call", (line, meaning) => {
  expect(read(line)).toEqual(meaning);
});

test.each([
  ["lend {broken", "the arguments of lend are not a JSON object: {broken"],
  ["lend [1]", /^lend is a tool, and its arguments cannot be read from "\[1\]"; expected lend \{/],
  ["lend me a book", /to say this to the user, write \/say lend …$/],
  [
    "lend titel=Dune",
    "lend has no parameter titel, did you mean title? (lend {…} passes any arguments)",
  ],
  [
    "close_desk now=1",
    "close_desk has no parameter now, it has none (close_desk {…} passes any arguments)",
  ],
  ['lennd {"title": "Dune"}', "there is no tool lennd, did you mean lend?"],
  ['sell {"title": "Dune"}', "there is no tool sell; the tools are lend, close_desk"],
  ["/tool sell", "there is no tool sell; the tools are lend, close_desk"],
  ["/say", "/say needs a text, such as /say Hello"],
  ["/foo", /^\/foo is no command; the commands are \/help, \/tools,/],
])("%j is a mistake that says what is right", (line, why) => {
  expect(read(line)).toEqual(typeof why === "string" ? why : expect.stringMatching(why));
});

test("tools are listed with their parameters, and shown with their schema", () => {
  expect(listTools(tools)).toBe(
    'lend(title: string, days?: integer, shelf?: "a" | "b", notes?: array | null)\n' +
      "    Lend a book.\nclose_desk()",
  );
  expect(listTools([])).toBe("(none)");
  expect(showTool(tools[1]!)).toBe("close_desk()");
  expect(showTool(tools[0]!).split("\n").slice(1, 3)).toEqual(["Lend a book.", "For some days."]);
});
