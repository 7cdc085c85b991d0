import type { Difference, StateDifference } from "../environment/state/difference.ts";

/** Describes a difference in sentences, one per line. Returns an empty list if nothing differs. */
export function describeDifference(difference: Difference): readonly string[] {
  const { state, moreState, missingCalls, extraCalls, missingOutputs } = difference;
  return [
    ...state.map(describeState),
    ...(moreState === undefined ? [] : [`state: ${moreState} more places`]),
    ...missingCalls.map((call) => `not called: ${call.name} ${call.argumentsText}`),
    ...extraCalls.map(
      ({ name, argumentsText, error }) =>
        `not wanted: ${name} ${argumentsText}${error === undefined ? "" : ` (${error})`}`,
    ),
    ...missingOutputs.map((output) => `not said: ${JSON.stringify(output)}`),
  ];
}

function describeState(difference: StateDifference): string {
  const { table, record, field, note } = difference;
  const place = `state: ${table}[${JSON.stringify(record)}]${field === "" ? "" : ` ${field}`}`;
  const wanted = "wanted" in difference ? JSON.stringify(difference.wanted) : "nothing";
  const got = "got" in difference ? JSON.stringify(difference.got) : "nothing";
  return `${place}: wanted ${wanted}, got ${got}${note === undefined ? "" : ` (${note})`}`;
}
