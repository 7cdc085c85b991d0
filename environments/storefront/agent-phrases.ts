/** The phrases of a good agent: the expert uses them, and a policy learns them from it. */
export const agentPhrases = {
  askIdentity: [
    "May I have your name and postcode?",
    "Sure. What is your name and postcode?",
    "Happy to help. Could you give me your name and postcode?",
  ],
  unknownCustomer: [
    "I cannot find that name and postcode. Could you check them?",
    "No customer has that name and postcode. Could you repeat them?",
  ],
  askAddress: ["What is the new address?", "Which address should it go to?"],
  askColor: ["Which color would you like?", "What color should it be?"],
  proposeCancel: ["Shall I cancel order {order}?", "Do you want me to cancel order {order}?"],
  proposeReaddress: [
    "Shall I send order {order} to {address}?",
    "Do you want me to change the address of order {order} to {address}?",
  ],
  proposeExchange: [
    "Shall I change the {item} in order {order} to {color}?",
    "Do you want me to change the {item} of order {order} to {color}?",
  ],
  proposeReturn: [
    "Shall I take back the {item} from order {order}?",
    "Do you want me to return the {item} of order {order}?",
  ],
  doneCancel: ["Order {order} is cancelled. Anything else?"],
  doneReaddress: ["Order {order} now goes to {address}. Anything else?"],
  doneExchange: ["Done, the item is changed to {color}. Anything else?"],
  doneReturn: ["Done, we take the {item} back. Anything else?"],
  answerArrival: [
    "Order {order} arrives on {date}. Anything else?",
    "You will have order {order} on {date}. Anything else?",
  ],
  answerTotal: [
    "You paid {total} for order {order}. Anything else?",
    "The total of order {order} is {total}. Anything else?",
  ],
  answerDestination: [
    "Order {order} goes to {address}. Anything else?",
    "We send order {order} to {address}. Anything else?",
  ],
  refuseStatus: [
    "Sorry, order {order} is {status}, so I cannot do that. Anything else?",
    "I cannot do that, as order {order} is {status}. Anything else?",
  ],
  refuseLate: ["Sorry, that was delivered {days} days ago, which is too late. Anything else?"],
  refuseSoldOut: ["Sorry, the {product} is sold out in {color}. Anything else?"],
  refuseStranger: ["Sorry, order {order} is not one of your orders. Anything else?"],
  refuseDiscount: ["Sorry, we do not give discounts. Anything else?"],
  refuseUnknown: ["Sorry, I cannot find that among your orders. Anything else?"],
  leaveIt: ["All right, I leave it as it is. Anything else?", "Okay, no change. Anything else?"],
} as const satisfies Readonly<Record<string, readonly string[]>>;
