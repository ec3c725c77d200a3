"""The configured models, one module for each choice of `llm=`."""
