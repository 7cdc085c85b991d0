import { describe, expect, test } from "vitest";
import type { TurnSpan } from "../../trajectory/segment.ts";
import type { FormatFacts, TurnRecord } from "../episode.ts";
import { formatMetadata } from "./format-metadata.ts";

function span(turnIndex: number, start: number, end: number): TurnSpan {
  return { turnIndex, start, end, finish: "stop", promptHash: "", outputHash: "" };
}

function record(turnIndex: number, format?: FormatFacts): TurnRecord {
  return {
    turnIndex,
    text: "",
    finish: "stop",
    sampledTokenCount: 0,
    promptTokenCount: 0,
    attemptCounts: {},
    steps: [],
    engineMs: 0,
    environmentMs: 0,
    ...(format !== undefined && { format }),
  };
}

const good: FormatFacts = { formatOk: true, leakedMarkup: false, thinkingMalformed: false };
const bad: FormatFacts = {
  ...good,
  formatOk: false,
  firstError: { status: "invalid-json", span: [5, 9], tokenSpan: [2, 6] },
};
const leaking: FormatFacts = { ...good, formatOk: false, leakedMarkup: true };

describe("formatMetadata()", () => {
  const records = [record(0, good), record(1, leaking), record(2, bad), record(3, bad)];

  test("returns the place of the first error in the row's own ids", () => {
    const row = { turns: [span(0, 10, 14), span(1, 20, 24), span(2, 30, 40), span(3, 50, 60)] };
    expect(formatMetadata(row, records)).toEqual({
      formatOk: false,
      firstFormatError: { turnIndex: 2, status: "invalid-json", tokenSpan: [32, 36] },
    });
  });

  test("knows only the row's own turns", () => {
    expect(formatMetadata({ turns: [span(0, 10, 14)] }, records)).toEqual({ formatOk: true });
    expect(formatMetadata({ turns: [span(1, 3, 4)] }, records)).toEqual({ formatOk: false });
  });

  test("ends with the turn if its stop id was dropped from the row", () => {
    expect(formatMetadata({ turns: [span(2, 30, 35)] }, records)).toMatchObject({
      firstFormatError: { tokenSpan: [32, 35] },
    });
  });

  test("is empty if no turn was judged", () => {
    expect(formatMetadata({ turns: [span(0, 1, 2)] }, [record(0)])).toEqual({});
    expect(formatMetadata({ turns: [] }, records)).toEqual({});
  });
});
