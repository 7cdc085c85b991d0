const lexemePattern = /"(?:[^"\\]|\\[^])*"|NaN|Infinity/g;

/**
 * True if a text that Python reads as JSON has `NaN` or an infinity in it, which JSON does not
 * know.
 */
export function hasJsonConstants(json: string): boolean {
  // Only where all strings are closed does the pattern take linear time.
  return (json.match(lexemePattern) ?? []).some((lexeme) => !lexeme.startsWith('"'));
}
