/**
 * The lines of a stream of UTF-8 bytes, without their line feeds. Only a line feed ends a line (and a
 * carriage return before it belongs to the ending): JSON text may hold any other separator, such as
 * U+2028, which `node:readline` would cut at. What follows the last line feed is a line too, unless
 * it is empty.
 */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array | string>,
): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let parts: string[] = [];
  for await (const chunk of chunks) {
    const text = typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      parts.push(text.slice(start, end));
      yield withoutReturn(parts.join(""));
      parts = [];
      start = end + 1;
    }
    if (start < text.length) parts.push(text.slice(start));
  }
  const rest = parts.join("") + decoder.decode();
  if (rest !== "") yield withoutReturn(rest);
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
