import { createSeededRandom, defineEnvironment, refuse, type User } from "turnwright";
import { noSpending } from "turnwright/user";
import { z } from "zod";

/** A task: the user buys pears. */
export interface Errand {
  readonly instruction: string;
  readonly count: number;
}

/** A customer who says how many only when asked, and leaves at anything else. */
export const customer: User<Errand> = {
  strategy: "errand",
  repeatable: true,
  open({ id, data }, { seed }) {
    const random = createSeededRandom(`${id} ${seed}`);
    return {
      begin: async () => random.pick(["I would like some pears.", "Have you got pears?"]),
      async reply(text) {
        if (/how many/i.test(text)) return `${data.count}, please.`;
        return { text: "Thank you. Bye.", leaves: true };
      },
      usage: () => noSpending,
    };
  },
};

export default defineEnvironment({
  name: "errand",
  tasks: [3, 5, 9].map((count): Errand => ({ instruction: `Buy ${count} pears.`, count })),
  initialState: () => ({ pears: 20, sold: 0 }),
  policy: "You sell fruit. Ask how many the customer wants before you sell.",
  tools: {
    sell: {
      description: "Sell pears.",
      parameters: z.object({ count: z.number().int().min(1) }),
      execute({ count }, shop) {
        if (count > shop.pears) refuse(`there are ${shop.pears} pears`);
        shop.pears -= count;
        shop.sold += count;
        return { left: shop.pears };
      },
    },
  },
  user: customer,
  score: (_, { count }) => ({ wanted: { sold: count } }),
  repeatable: true,
});
