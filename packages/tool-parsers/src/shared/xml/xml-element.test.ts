import { expect, test } from "vitest";
import { parseXmlElement, type XmlElement } from "./xml-element.ts";

type Simple = readonly [tag: string, text: string, children: readonly Simple[]];

function simplify({ tag, text, children }: XmlElement): Simple {
  return [tag, text, children.map(simplify)];
}

// Results of CPython 3.11's ElementTree.fromstring().
test.each<[string, Simple | null]>([
  ["<a/>", ["a", "", []]],
  ["<a>x<!-- c -->y<b>z</b>w</a>", ["a", "xy", [["b", "z", []]]]],
  ["<a>&lt;&#65;<![CDATA[a<b]]>\r\n</a>", ["a", "<Aa<b\n", []]],
  ["<a>&bogus;</a>", null],
  ["<a>]]></a>", null],
  ["<a>\u0001</a>", null],
  ["<a>x</b>", null],
  ["<a>x", null],
  ["<a></a>x", null],
  ["<a></a> \n", ["a", "", []]],
  ['<a b="1" b="2"/>', null],
  ["<p:a/>", null],
  [`<a>${"x".repeat(20_000)}</a>`, ["a", "x".repeat(20_000), []]],
  ["x", null],
  ["", null],
])("%s", (source, element) => {
  const read = parseXmlElement(source);
  expect(read === undefined ? null : simplify(read)).toEqual(element);
});

test("attributes lose their white space and references", () => {
  const element = parseXmlElement(`<a b="x\n&amp;&#9;" c='"'/>`);
  expect([...(element?.attributes ?? [])]).toEqual([
    ["b", "x &\t"],
    ["c", '"'],
  ]);
});
