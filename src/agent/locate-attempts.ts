import type { Attempt } from "../parser/tool-call-parser.ts";
import type { AttemptPlace } from "./turn-form.ts";

/** How much of a part is looked for; the rest is then compared. */
const probeLength = 64;

/**
 * Where attempts that were found in a part of a turn's text stand in the whole of it. The part need not
 * stand there in one piece: some formats leave headers out between its pieces. What cannot be found
 * again is given the rest of the text.
 */
export function locateAttempts(
  text: string,
  part: string,
  attempts: readonly Attempt[],
): readonly AttemptPlace[] {
  const offset = findPart(text, part);
  let place = 0;
  return attempts.map((attempt) => {
    const { raw, span } = attempt;
    if (offset !== undefined) {
      return toPlace(attempt, [offset + span[0], offset + span[1]]);
    }
    const found = place === text.length ? -1 : text.indexOf(raw, place);
    const start = found === -1 ? place : found;
    place = found === -1 ? text.length : found + raw.length;
    return toPlace(attempt, [start, place]);
  });
}

/** Where the part stands in the text as a whole. */
function findPart(text: string, part: string): number | undefined {
  if (text.endsWith(part)) return text.length - part.length;
  const start = text.indexOf(part.slice(0, probeLength));
  return start !== -1 && text.startsWith(part, start) ? start : undefined;
}

function toPlace({ status, name, diagnostics }: Attempt, span: AttemptPlace["span"]): AttemptPlace {
  const notes = [...new Set(diagnostics.map((found) => found.status))].filter(
    (note) => note !== status,
  );
  return {
    status,
    ...(name === undefined ? {} : { name }),
    span,
    ...(notes.length === 0 ? {} : { notes }),
  };
}
