import { isShareOver, takeTurn } from "../../async/take-turn.ts";

/** Returns blocks of bytes as one text of base64. Lets other work run in between. */
export async function base64Text(blocks: AsyncIterable<Uint8Array>): Promise<string> {
  const texts: string[] = [];
  let rest: Uint8Array = new Uint8Array();
  for await (const block of blocks) {
    if (isShareOver()) await takeTurn();
    const bytes = Buffer.concat([rest, block]);
    // Three bytes make four characters.
    const end = bytes.length - (bytes.length % 3);
    texts.push(bytes.toString("base64", 0, end));
    rest = bytes.subarray(end);
  }
  texts.push(Buffer.from(rest).toString("base64"));
  return texts.join("");
}
