import { expect, test } from "vitest";
import { Redactor } from "../../secrets/redactor.ts";
import { openBody } from "./reply-body.ts";

const redactor = new Redactor(["hunter2-hunter2"]);
const stream = { status: 200, headers: { "content-type": "text/event-stream; charset=utf-8" } };

/** Characters of two, three and four bytes, and a combining pair. */
const texts = ["é", "日本", "\u{1F600}", "\u{1F468}\u200D\u{1F469}", "{}"];
const bytes = Buffer.from(texts.map((text) => `: keep-alive\n\ndata: "${text}"\r\n\r\n`).join(""));

test("events are the same for any split of the bytes", () => {
  const expected = texts.map((text) => `"${text}"`);
  for (let first = 0; first <= bytes.length; first++) {
    for (const second of [first, first + 1, first + 2, first + 5]) {
      const events: string[] = [];
      const body = openBody(stream, {
        limitBytes: 1_000,
        redactor,
        onEvent: (data) => void events.push(data),
      });
      for (const part of [bytes.subarray(0, first), bytes.subarray(first, second)]) body.add(part);
      body.add(bytes.subarray(second));
      expect(events).toEqual(expected);
      expect(body.end()).toBe("");
    }
  }
});

test("events contain no secrets", () => {
  const events: string[] = [];
  const body = openBody(stream, {
    limitBytes: 1_000,
    redactor,
    onEvent: (data) => void events.push(data),
  });
  body.add(Buffer.from('data: {"you":"hunter2-hunter2"}\n\n'));
  expect(events).toEqual(['{"you":"[redacted]"}']);
});

test("an unfinished event is too long at the limit, and many short ones are not", () => {
  const open = () => openBody(stream, { limitBytes: 20, redactor, onEvent: () => undefined });
  const many = open();
  for (let count = 0; count < 10; count++) {
    expect(many.add(Buffer.from("data: 123456\n\n"))).toBeUndefined();
  }
  const endless = open();
  expect(endless.add(Buffer.from("data: 1234567890"))).toBeUndefined();
  expect(endless.add(Buffer.from("1234567890"))).toBe("too-long");
});

test("an error is a text, and so is a reply that was not requested as a stream", () => {
  const onEvent = (): never => expect.unreachable();
  const options = { limitBytes: 1_000, redactor };
  for (const body of [
    openBody({ ...stream, status: 503 }, { ...options, onEvent }),
    openBody({ status: 200, headers: {} }, { ...options, onEvent }),
    openBody(stream, { ...options, onEvent: undefined }),
  ]) {
    body.add(bytes);
    expect(body.end()).toBe(bytes.toString());
  }
});

test("a stream's byte order mark is removed, and bytes that are not UTF-8 are refused", () => {
  const events: string[] = [];
  const body = openBody(stream, {
    limitBytes: 1_000,
    redactor,
    onEvent: (data) => void events.push(data),
  });
  body.add(Buffer.from("\uFEFFdata: 1\n\n"));
  expect(events).toEqual(["1"]);
  expect(() => body.add(Buffer.from([0xed, 0xa0, 0x80]))).toThrow("the stream is not UTF-8");
});
