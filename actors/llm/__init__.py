"""Language models: one module for each choice of `llm=`."""
