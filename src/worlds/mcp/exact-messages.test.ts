import { expect, test } from "vitest";
import { ExactMessages } from "./exact-messages.ts";

test("an object of any size is sent unchanged", () => {
  const messages = new ExactMessages();
  const value = new Map([["a", 'x\\"é'.repeat(2_000_000)]]);
  const text = JSON.stringify({ params: { arguments: messages.carry(value), name: "b" } });
  const expected = { params: { arguments: { a: value.get("a") }, name: "b" } };
  expect(messages.outgoing(text) === JSON.stringify(expected)).toBe(true);
});

test("a text that nests too deeply reaches the client if it is not JSON, and otherwise is refused by its id", () => {
  const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
  const read = (text: string) => new ExactMessages().incoming(Buffer.from(text));
  const broken = `{"id":1,"result":{"a":NaN,"b":${deep}}}`;
  expect(read(broken)).toBe(broken);
  const refused = JSON.parse(read(`{"id":1.5,"result":{"structuredContent":${deep}}}`)) as object;
  expect(refused).toMatchObject({
    id: 1.5,
    error: { message: "its message nests too deeply" },
  });
});
