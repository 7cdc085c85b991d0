import { expect, test } from "vitest";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { readPromptTime, toPromptTime, withPromptTime } from "./prompt-time.ts";

const evening = new Date(2026, 10, 23, 23, 59, 58, 7);

test("a moment is written as local time, and read back", () => {
  const text = toPromptTime(evening);
  expect(text).toBe("2026-11-23T23:59:58.007");
  expect(readPromptTime(text)).toEqual(evening);
});

test.each([undefined, 7, "", "soon", "2026-11-23", "2026-13-01T00:00:00.000", "2026-11-23T10:05Z"])(
  "%j is not such a moment",
  (text) => {
    expect(readPromptTime(text)).toBeUndefined();
  },
);

test("attempts of a run have its date, unless one was chosen for their renderer", () => {
  const setup = { renderer: createCharacterRenderer(), promptTime: new Date(0) };
  expect(withPromptTime(setup, toPromptTime(evening)).promptTime).toEqual(evening);
  expect(withPromptTime(setup, undefined)).toBe(setup);
  const chosen = { ...setup, renderer: { ...setup.renderer, now: new Date(1) } };
  expect(withPromptTime(chosen, toPromptTime(evening))).toBe(chosen);
});
