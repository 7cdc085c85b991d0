import type { Goal, Wish } from "./goal.ts";
import { fillPhrase, type Slots } from "./phrase.ts";

/** Phrases for each kind of request, without its last detail if that can be left out. */
export const requestPhrases: Readonly<Record<Wish["type"], readonly string[]>> = {
  arrival: [
    "When will {which} arrive?",
    "Where is {which}? I am waiting for it.",
    "I would like to know when {which} gets here.",
    "Can you tell me the delivery date of {which}?",
  ],
  total: [
    "How much did I pay for {which}?",
    "What is the total of {which}?",
    "I need to know what {which} cost in total.",
  ],
  destination: [
    "Which address does {which} go to?",
    "Where are you sending {which}?",
    "What address do you have for {which}?",
  ],
  cancel: [
    "I want to cancel {which}.",
    "Please cancel {which}.",
    "I no longer need {which}. Can you stop it?",
    "Can I still cancel {which}?",
  ],
  readdress: [
    "I need to change the address of {which}.",
    "I have moved. Please send {which} somewhere else.",
    "Can {which} go to a different address?",
  ],
  exchange: [
    "I would like {thing} in another color.",
    "Can I get a different color for {thing}?",
    "I picked the wrong color for {thing}.",
  ],
  return: [
    "I want to return {thing}.",
    "I do not like {thing}. Can I send it back?",
    "Please take back {thing}.",
  ],
  discount: [
    "Can I have a discount on {which}?",
    "Please make {which} cheaper.",
    "I want some money off {which}.",
  ],
};

/** Phrases for each kind of request with every detail. */
export const completeRequestPhrases: Readonly<Partial<Record<Wish["type"], readonly string[]>>> = {
  readdress: [
    "Please send {which} to {address} instead.",
    "Can you change the address of {which} to {address}?",
    "I moved to {address}. Please send {which} there.",
  ],
  exchange: [
    "Can I have {thing} in {color}?",
    "Please change {thing} to {color}.",
    "I would rather have {thing} in {color}.",
  ],
};

/** Customers' answers, by the question. */
export const replyPhrases = {
  identity: [
    "{name}, {postcode}.",
    "My name is {name} and my postcode is {postcode}.",
    "I am {name}, postcode {postcode}.",
    "{name}. The postcode is {postcode}.",
  ],
  address: ["To {address}, please.", "It is {address}.", "The new address is {address}."],
  color: ["In {color}, please.", "I would like {color}.", "Make it {color}."],
  yes: ["Yes, please.", "Yes, go ahead.", "Sure, do it.", "Yes, that is right.", "Please do."],
  no: ["No, leave it as it is.", "No, I have changed my mind.", "Rather not, thank you."],
  insist: ["Can you make an exception?", "Please, just this once.", "Are you sure?"],
} as const;

/** Phrases that open, continue, repair and end a conversation. */
export const framePhrases = {
  greeting: ["Hi! ", "Hello. ", "Good morning. ", "Hey! ", ""],
  next: ["Thanks. ", "Okay. One more thing. ", "All right. Another thing. ", "Good. "],
  astray: ["Sorry, I do not understand. ", "That is not what I asked. "],
  correction: ["No, that is not right. ", "No, you got that wrong. "],
  bye: ["No, that is all. Thanks!", "No, thank you. Bye!", "That was everything. Thank you."],
  giveUp: ["This leads nowhere. Bye.", "I will try again another day."],
} as const;

/** Ways to name an order: by its number, or by its content. */
export const whichPhrases = {
  known: ["order {order}", "my order {order}"],
  unknown: ["the order with the {item}", "my order with the {item}"],
} as const;

/** Ways to name an item, with and without the order's number. */
export const thingPhrases = {
  known: ["the {item} from order {order}", "the {item} in order {order}"],
  unknown: ["the {item}", "my {item}"],
} as const;

/** The slots of a goal's phrases. */
export function goalSlots({ orderId: order, item, wish }: Goal): Slots {
  switch (wish.type) {
    case "readdress":
      return { order, item, address: wish.address };
    case "exchange":
      return { order, item, color: wish.color };
    default:
      return { order, item };
  }
}

/** A request phrase with its `{which}` or `{thing}` filled in. Its other slots are still open. */
export function spellOut(phrase: string, which: string, thing: string): string {
  return fillPhrase(phrase, {
    which,
    thing,
    order: "{order}",
    item: "{item}",
    address: "{address}",
    color: "{color}",
  });
}
