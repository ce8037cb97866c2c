// HelloCities5 on Restate: `node service.js PORT` serves `tour/run`, which calls `hello/greet` for five cities in a row.
// Each call is durable, as an activity of an orchestration is.
import * as restate from "@restatedev/restate-sdk";

const CITIES = ["Tokyo", "Seattle", "London", "Amsterdam", "Seoul"];

const hello = restate.service({
  name: "hello",
  handlers: { greet: async (_ctx, city) => `Hello ${city}!` },
});

const tour = restate.service({
  name: "tour",
  handlers: {
    run: async (ctx) => {
      const said = [];
      for (const city of CITIES) {
        said.push(await ctx.serviceClient(hello).greet(city));
      }
      return said;
    },
  },
});

restate.serve({ services: [hello, tour], port: Number(process.argv[2]) });
