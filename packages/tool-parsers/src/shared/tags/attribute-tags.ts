/** An opening tag with one attribute of interest. */
interface AttributeTag {
  /** The attribute's value. */
  readonly value: string;
  readonly start: number;
  /** The place after the `>` of the tag. */
  readonly end: number;
}

const wordPattern = /[\p{L}\p{N}_]/u;

/**
 * Finds the next tag `<name … attribute="value" …>` at or after `from`, as the Python pattern
 * `<name\b[^>]*?\battribute="([^"]+)"[^>]*?>` does. Takes linear time over all calls with ascending
 * `from`.
 */
export function findAttributeTag(
  text: string,
  tag: { readonly name: string; readonly attribute: string },
  from: number,
): AttributeTag | undefined {
  const open = `<${tag.name}`;
  let start = text.indexOf(open, from);
  while (start !== -1) {
    const headStart = start + open.length;
    const regionEnd = text.indexOf(">", headStart);
    if (regionEnd === -1) return undefined;
    if (isWordAt(text, headStart)) {
      start = text.indexOf(open, headStart);
      continue;
    }
    const found = findAttribute(text, tag.attribute, { start: headStart, end: regionEnd });
    if (found === "none-left") return undefined;
    if (found !== undefined) return { ...found, start };
    // No later tag of the region has the attribute either.
    start = text.indexOf(open, regionEnd);
  }
  return undefined;
}

function findAttribute(
  text: string,
  attribute: string,
  region: { readonly start: number; readonly end: number },
): { value: string; end: number } | "none-left" | undefined {
  const head = `${attribute}="`;
  const limit = region.end + head.length;
  const area = text.slice(0, limit);
  for (
    let place = area.indexOf(head, region.start);
    place !== -1 && place < region.end;
    place = area.indexOf(head, place + 1)
  ) {
    if (place > 0 && isWordAt(text, place - 1)) continue;
    const valueStart = place + head.length;
    const valueEnd = text.indexOf('"', valueStart);
    if (valueEnd === -1) return "none-left";
    if (valueEnd === valueStart) continue;
    const close = text.indexOf(">", valueEnd);
    if (close === -1) return "none-left";
    return { value: text.slice(valueStart, valueEnd), end: close + 1 };
  }
  return undefined;
}

function isWordAt(text: string, index: number): boolean {
  return index < text.length && wordPattern.test(text[index] ?? "");
}
