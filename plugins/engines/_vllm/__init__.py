"""The parts of the engine `vllm`: what travels to a vLLM engine, what runs inside it, and the two ways to reach it."""
