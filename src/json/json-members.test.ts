import { describe, expect, test } from "vitest";
import { countLists, findItems, findMembers, largestInteger } from "./json-members.ts";

function membersOf(text: string): Record<string, string> | undefined {
  const bytes = Buffer.from(text);
  const members = findMembers(bytes)?.members;
  return (
    members &&
    Object.fromEntries(
      [...members].map(([name, extent]) => [name, bytes.toString("utf8", ...extent)]),
    )
  );
}

describe("findMembers()", () => {
  test("takes members with the names of an object's own functions as any others", () => {
    const names = ["constructor", "__proto__", "toString"];
    const text = `{${names.map((name) => `"${name}":1`).join(",")}}`;
    expect([...findMembers(Buffer.from(text), 0, {})!.members.keys()]).toEqual(names);
  });

  test.each([
    ["{}", {}],
    [' {"a" : 1 , "b":[{"c":"]}"}],\n"d":"\\"}"} ', { a: "1", b: '[{"c":"]}"}]', d: '"\\"}"' }],
    ['{"é":{"x":"ü"},"n":null}', { é: '{"x":"ü"}', n: "null" }],
    ['{"a":"\\\\"}', { a: '"\\\\"' }],
  ])("finds the ranges of the members of %j", (text, expected) => {
    expect(membersOf(text)).toEqual(expected);
  });

  test.each([
    "",
    "[]",
    "{",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":[1}',
    '{"a":"x',
    "{1:2}",
    '{"a" 1}',
    '{"a":1,}',
    "{,}",
  ])("finds none in %j", (text) => {
    expect(membersOf(text)).toBeUndefined();
  });

  test("finds no members if they nest too deep", () => {
    const bytes = Buffer.from('{"a":[{"b":[]}],"c":{}}');
    expect(findMembers(bytes, 0, {}, 3)?.members.get("c")).toEqual([20, 22]);
    expect(findMembers(bytes, 0, {}, 2)).toBeUndefined();
  });
});

describe("findItems()", () => {
  function itemsOf(text: string): string[] | undefined {
    const bytes = Buffer.from(text);
    return findItems(bytes)?.map((extent) => bytes.toString("utf8", ...extent));
  }

  test.each([
    ["[]", []],
    [" [ ] ", []],
    [' [1 , {"a":[2]},\n"]é" ,[[]], null] ', ["1", '{"a":[2]}', '"]é"', "[[]]", "null"]],
  ])("finds the ranges of the items of %j", (text, expected) => {
    expect(itemsOf(text)).toEqual(expected);
  });

  test.each(["", "{}", "[", "[1", "[1,", "[,]", "[1,]", "[1 2]", '["x', "[[1]", "[{]"])(
    "finds none in %j",
    (text) => {
      expect(itemsOf(text)).toBeUndefined();
    },
  );

  test("finds no members if items nest too deep", () => {
    const bytes = Buffer.from("[[[]],1]");
    expect(findItems(bytes, 0, 2)).toHaveLength(2);
    expect(findItems(bytes, 0, 1)).toBeUndefined();
  });
});

test("largestInteger() ignores numbers in strings", () => {
  const bytes = Buffer.from('{"9999":3,"a\\"77":12,"b":7}');
  expect(largestInteger(bytes, [0, bytes.length])).toBe(12);
  expect(largestInteger(Buffer.from("{}"), [0, 2])).toBe(-1);
});

test("countLists() counts the pieces of a scored vocabulary", () => {
  const bytes = Buffer.from('[["[[",-1.5],["]",[2]],["a",0]]');
  expect(countLists(bytes, [0, bytes.length])).toBe(3);
});
