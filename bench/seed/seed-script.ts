import type { TokenCodec } from "../../src/tokenizer/codec.ts";

/** The servers' answers, the same in each episode. JSON-able. */
export interface SeedScript {
  /** The policy's turns in order, each with its stop id. */
  readonly turns: readonly { readonly text: string; readonly ids: readonly number[] }[];
  /** The user's lines. After the last one, the user leaves. */
  readonly userLines: readonly string[];
}

/** The user's lines, in the length of τ-bench's. */
const userLines = [
  "Hi! I placed two orders with you some time ago, and I would like to change something about both.",
  "Sure, my name is Yusuf Rossi, and my zip code is 19122. Is that enough to find my account?",
  "Before we go on, could you tell me how many t-shirt options there are in the store right now?",
  "All right. The keyboard should be one with clicky switches, and without a backlight if need be.",
  "Could you read out the details of that order once more? I do not quite remember what is in it.",
  "Yes, that sounds right, please go ahead with it, and use the payment method I paid with before.",
  "That is all clear to me now. Could you send what we agreed on to the address in my profile too?",
  "One more thing: what about the refund for the water bottle, when will I see it in my account?",
];

/** Calls that τ-bench's retail answers with records of the usual sizes. */
const calls: readonly (readonly [name: string, argumentsText: string])[] = [
  ["find_user_id_by_name_zip", '{"first_name": "Yusuf", "last_name": "Rossi", "zip": "19122"}'],
  ["get_user_details", '{"user_id": "yusuf_rossi_9620"}'],
  ["get_order_details", '{"order_id": "#W6247578"}'],
  ["get_order_details", '{"order_id": "#W9711842"}'],
  ["get_product_details", '{"product_id": "1656367028"}'],
  ["list_all_product_types", "{}"],
  ["get_order_details", '{"order_id": "#W2378156"}'],
  ["get_product_details", '{"product_id": "4896585277"}'],
  ["calculate", '{"expression": "(213.45 - 189.98) * 2 + 17.5"}'],
  ["get_order_details", '{"order_id": "#W4776164"}'],
  ["get_order_details", '{"order_id": "#W6679257"}'],
  ["find_user_id_by_email", '{"email": "yusuf.rossi7301@example.com"}'],
];

const saying =
  "Thank you for waiting. I have looked at the order and at the products that are there for it. " +
  "The item can be exchanged once, for another option of the same product, and the difference is " +
  "settled with the payment method that you paid with. Please tell me (yes) if I may go ahead with " +
  "it, or what you would like to change about it before I do.";
const thinking =
  "The customer wants to know about the order, so the record has to be read first, before anything " +
  "about it can be said or changed.";

/** Nineteen turns, after which the user leaves: eleven calls and eight lines, in τ-bench's mix. */
export async function writeSeedScript(codec: TokenCodec): Promise<SeedScript> {
  const texts: string[] = [];
  for (const [index, [name, argumentsText]] of calls.entries()) {
    if (index % 3 !== 1) texts.push(saying);
    texts.push(
      `${thinking}\n<tool_call>\n{"name": "${name}", "arguments": ${argumentsText}}\n</tool_call>`,
    );
  }
  const turns = texts.map(async (text) => ({ text, ids: await codec.encode(`${text}<|im_end|>`) }));
  return { turns: await Promise.all(turns), userLines };
}
