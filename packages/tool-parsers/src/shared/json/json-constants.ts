const lexemePattern = /"(?:[^"\\]|\\[^])*"|NaN|Infinity/g;

/** True if a text that Python reads as JSON contains `NaN` or an infinity, which are not JSON. */
export function hasJsonConstants(json: string): boolean {
  // The pattern takes linear time only if all strings are closed.
  return (json.match(lexemePattern) ?? []).some((lexeme) => !lexeme.startsWith('"'));
}
