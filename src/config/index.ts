// The public API of `agent-belay/config`: the types of a configuration.
export {
  type BelayConfig,
  defineConfig,
  type LimitsConfig,
  type ProcessesConfig,
  type ProviderConfig,
  type RateLimitsConfig,
  type ServerConfig,
  type SettledConfig,
} from "./config.ts";
